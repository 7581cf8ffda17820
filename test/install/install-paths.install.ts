import { existsSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { featureFiles, valueName } from "../../infra/helm/chart.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { ANNOUNCE_SIDECARSET_PATH } from "../../shared/api/names.ts";
import { installation, optionalFiles } from "../../shared/install/manifests.ts";
import { pathSecretOf } from "../../shared/webhook/server/path-secret.ts";
import * as PATHS from "../../shared/webhook/server/paths.ts";
import { objectsIn, ROOT, run } from "./run.ts";

/** The values that differ between installations. */
interface Values {
  readonly url: string;
  readonly caBundle?: string;
  readonly pathSecret?: string;
  /** path → the webhook's own address */
  readonly urls?: Readonly<Record<string, string>>;
  readonly failurePolicy?: "Ignore" | "Fail";
}

const AUTHORITY = Buffer.from("-----BEGIN CERTIFICATE-----\nx\n").toString("base64");
const SECRET = "s3cretS3cretS3cretS3cretS3cretS3cretS3cret-";

const INSTALLATIONS: Readonly<Record<string, Values>> = {
  "a publicly trusted address": { url: "https://webhooks.example.com" },
  "an authority of one's own, and a port": {
    url: "https://webhooks.example.com:9443",
    caBundle: AUTHORITY,
    failurePolicy: "Fail",
  },
  "a secret path": { url: "https://webhooks.example.com", pathSecret: SECRET, caBundle: AUTHORITY },
  "an address for each webhook": {
    url: "https://unused.example.com",
    pathSecret: SECRET,
    urls: {
      "/mutate-pod": "https://a.lambda-url.eu-central-1.on.aws",
      "/mutate-apps-kruise-io-sidecarset": "https://b.lambda-url.eu-central-1.on.aws",
      "/announce-apps-kruise-io-sidecarset": "https://c.lambda-url.eu-central-1.on.aws",
      "/convert": "https://d.lambda-url.eu-central-1.on.aws",
    },
  },
};

let folder: string;
let helm: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-install-"));
  helm = join(ROOT, ".cache", "helm-render");
  await run("go", ["build", "-trimpath", "-o", helm, "."], {
    cwd: join(ROOT, "test/install/helm"),
    env: { CGO_ENABLED: "0" },
  });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Returns the objects from their one source in the code. */
function expected({ failurePolicy, ...address }: Values): readonly KubernetesObject[] {
  return installation(address, failurePolicy ? { podFailurePolicy: failurePolicy } : {});
}

/** Returns kind and name → the applied object as an API server would store it, without nulls. */
function byName(objects: readonly KubernetesObject[]): Readonly<Record<string, KubernetesObject>> {
  const stored: readonly KubernetesObject[] = JSON.parse(JSON.stringify(objects), (_, value) => value ?? undefined);
  const named = stored.map(
    (one) => [`${one.kind}/${one.metadata?.namespace ?? ""}/${one.metadata?.name}`, one] as const,
  );
  expect(new Set(named.map(([name]) => name)).size).toBe(objects.length);
  return Object.fromEntries(named);
}

function expectSame(objects: readonly KubernetesObject[], wanted: readonly KubernetesObject[]): void {
  expect(wanted.length).toBeGreaterThanOrEqual(14);
  expect(byName(objects)).toEqual(byName(wanted));
}

/** Returns secrets as `sidecarset path-secrets` prints them: a shell does not see the stored secret. */
function secretsOf({ pathSecret }: Values): Readonly<Record<string, string>> {
  if (pathSecret === undefined) return {};
  const all = [
    ...Object.values(PATHS).flatMap((path) => (typeof path === "string" ? [path] : [])),
    ANNOUNCE_SIDECARSET_PATH,
  ];
  return Object.fromEntries(all.map((path) => [path, pathSecretOf(pathSecret, path)]));
}

async function kustomize(values: Values, fenceAnnotations = "[]") {
  const { url, urls = {}, pathSecret, caBundle = "", failurePolicy = "Ignore" } = values;
  const root = join(folder, "kustomize");
  await rm(root, { recursive: true, force: true });
  for (const part of ["rbac", "crd", "webhooks", "kustomize"])
    await cp(join(ROOT, "infra", part), join(root, part), { recursive: true });
  const at = (path: string) => {
    const host = (urls[path] ?? url).replace("https://", "");
    return pathSecret === undefined ? host : `${host}/s/${pathSecretOf(pathSecret, path)}`;
  };
  const data = {
    pods: at("/mutate-pod"),
    sidecarsets: at("/mutate-apps-kruise-io-sidecarset"),
    validation: at("/announce-apps-kruise-io-sidecarset"),
    conversion: at("/convert"),
    caBundle,
    failurePolicy,
    fenceAnnotations,
  };
  const file = join(root, "kustomize/overlay/address.yaml");
  const [address] = objectsIn(await readFile(file, "utf8"));
  expect(Object.keys((address as { data?: object }).data ?? {})).toEqual(Object.keys(data));
  await writeFile(file, JSON.stringify({ ...address, data }));
  return objectsIn(await run("kubectl", ["kustomize", join(root, "kustomize/overlay")]));
}

async function helmTemplate(values: object): Promise<readonly KubernetesObject[]> {
  const yaml = await run(helm, [join(ROOT, "infra/helm/sidecarset"), "kruise-system"], {
    input: JSON.stringify(values),
  });
  return objectsIn(yaml).map(withoutKeep);
}

const helmValues = ({ pathSecret, ...values }: Values) => ({
  ...values,
  pathSecrets: secretsOf({ ...values, ...(pathSecret ? { pathSecret } : {}) }),
});

/** Removes the only addition of the chart: an annotation that keeps users' objects when the chart is removed. */
function withoutKeep(object: KubernetesObject): KubernetesObject {
  const isKept = object.kind === "CustomResourceDefinition" || object.kind === "Namespace";
  const { "helm.sh/resource-policy": policy, ...annotations } = object.metadata?.annotations ?? {};
  expect(policy, object.kind).toBe(isKept ? "keep" : undefined);
  const { annotations: _, ...metadata } = object.metadata ?? {};
  return { ...object, metadata: Object.keys(annotations).length > 0 ? { ...metadata, annotations } : metadata };
}

/** Applies a module without a provider, and returns its outputs. */
async function terraformOutputs(module: string, variables: object): Promise<Readonly<Record<string, unknown>>> {
  const state = join(folder, "terraform.tfstate");
  await rm(state, { force: true });
  const given = join(folder, "values.tfvars.json");
  await writeFile(given, JSON.stringify(variables));
  const settings = join(folder, "terraformrc");
  await writeFile(settings, "");
  const env = { TF_DATA_DIR: join(folder, "data"), TF_CLI_CONFIG_FILE: settings, CHECKPOINT_DISABLE: "1" };
  const at = `-chdir=${join(ROOT, "infra/terraform", module)}`;
  const quiet = ["-auto-approve", "-input=false", "-no-color", "-backup=-"];
  await run("terraform", [at, "apply", ...quiet, `-state=${state}`, `-var-file=${given}`], { env });
  const output: Record<string, { readonly value: unknown }> = JSON.parse(
    await run("terraform", [at, "output", `-state=${state}`, "-json"], { env }),
  );
  return Object.fromEntries(Object.entries(output).map(([name, { value }]) => [name, value]));
}

interface TerraformValues extends Values {
  readonly path_secrets?: Readonly<Record<string, string>>;
  readonly fence?: boolean;
  readonly fence_annotations?: readonly string[];
  readonly features?: readonly string[];
}

async function terraform(values: TerraformValues): Promise<readonly KubernetesObject[]> {
  const {
    url,
    urls = {},
    caBundle = "",
    failurePolicy = "Ignore",
    features = [],
    fence = true,
    fence_annotations = [],
  } = values;
  const variables = {
    url,
    urls,
    ca_bundle: caBundle,
    path_secrets: values.path_secrets ?? secretsOf(values),
    failure_policy: failurePolicy,
    features,
    fence,
    fence_annotations,
  };
  return (await terraformOutputs("objects", variables))["objects"] as readonly KubernetesObject[];
}

const FLAGS: Readonly<Record<string, string>> = { url: "--url", failurePolicy: "--failure-policy" };

async function cli({ caBundle, pathSecret, urls = {}, ...values }: Values): Promise<readonly KubernetesObject[]> {
  const args = Object.entries(values).flatMap(([key, value]) => [FLAGS[key] ?? key, value]);
  for (const [path, url] of Object.entries(urls)) args.push("--url-of", `${path}=${url}`);
  if (caBundle !== undefined) {
    await writeFile(join(folder, "ca.crt"), Buffer.from(caBundle, "base64"));
    args.push("--ca-bundle", join(folder, "ca.crt"));
  }
  if (pathSecret !== undefined) {
    await writeFile(join(folder, "path-secrets"), `${pathSecret}\n`);
    args.push("--path-secrets", join(folder, "path-secrets"));
  }
  return objectsIn(await run(process.execPath, [...INSTALL, ...args]));
}

describe.each(Object.entries(INSTALLATIONS))("%s", (_, values) => {
  it("kustomize renders the same objects as the code", async () =>
    expectSame(await kustomize(values), expected(values)));
  it("Helm renders the same objects as the code", async () =>
    expectSame(await helmTemplate(helmValues(values)), expected(values)));
  it("Terraform renders the same objects as the code", async () =>
    expectSame(await terraform(values), expected(values)));
  it("the command line prints the same objects as the code", async () =>
    expectSame(await cli(values), expected(values)));
});

describe("by the command line", () => {
  const { "a publicly trusted address": open, "a secret path": secret } = INSTALLATIONS;
  it("an address alone is enough for a complete installation", async () =>
    expectSame(await cli(open as Values), expected(open as Values)));
  it("another installation makes other objects", async () => {
    const objects = await cli(open as Values);
    expect(() => expectSame(objects, expected(secret as Values))).toThrow();
  });
});

describe("optional features of an installation", () => {
  const optional = optionalFiles();
  const values: Values = { url: "https://sidecarset-webhooks.invalid" };

  it("the test covers every optional feature", () => {
    const named = [...featureFiles().values()].flat();
    expect(new Set(named)).toEqual(new Set(optional.keys()));
    expect(named).toHaveLength(optional.size);
  });

  it.each([...featureFiles()])("%s", async (feature, paths) => {
    const added = paths.flatMap((path) => objectsIn(optional.get(path) ?? ""));
    expect(added.length).toBeGreaterThan(0);
    const objects = [...expected(values), ...added];
    expectSame(await helmTemplate({ ...values, features: { [valueName(feature)]: true } }), objects);
    expectSame(await terraform({ ...values, features: [feature] }), objects);
  });
});

/** Removes blanks in CEL lists, because Helm and Terraform write lists without blanks. */
function same(objects: readonly KubernetesObject[]): readonly KubernetesObject[] {
  return JSON.parse(JSON.stringify(objects).replace('mesh\\", \\"logs', 'mesh\\",\\"logs'));
}

const INSTALL = ["functions/cli.mjs", "install"];

describe("a chart that serves in the cluster", () => {
  it("serve.enabled adds the Deployment of infra/container, and calls its Service", async () => {
    const deployment = await readFile(join(ROOT, "infra/container/deployment.yaml"), "utf8");
    const image = "registry.example/sidecarset:1";
    const wanted = [
      ...expected({ url: "https://sidecarset-serve.kruise-system.svc" }),
      ...objectsIn(deployment.replaceAll("sidecarset-serverless:0.2.0", image)),
    ];
    expectSame(await helmTemplate({ serve: { enabled: true, image } }), wanted);
  });

  it("the chart's values set the place and the number of the pods", async () => {
    const values = {
      enabled: true,
      image: "registry.example/sidecarset@sha256:0",
      replicas: 3,
      priorityClassName: "",
      podAnnotations: { "example.com/mesh": "off" },
      nodeSelector: { pool: "system" },
      tolerations: [{ key: "system", operator: "Exists" }],
      affinity: { nodeAffinity: {} },
      imagePullSecrets: [{ name: "pull" }],
      resources: { requests: { cpu: "1" } },
      rolloutResources: { limits: { memory: "1Gi" } },
    };
    const objects = await helmTemplate({ serve: values });
    const deployments = objects.filter(({ kind }) => kind === "Deployment") as unknown as readonly (KubernetesObject & {
      readonly spec: {
        readonly replicas: number;
        readonly template: { readonly metadata: object; readonly spec: object };
      };
    })[];
    expect(deployments).toHaveLength(2);
    for (const { spec } of deployments) {
      const { nodeSelector, tolerations, affinity, imagePullSecrets } = values;
      expect(spec.replicas).toBe(3);
      expect(spec.template.metadata).toMatchObject({ annotations: values.podAnnotations });
      expect(spec.template.spec).toMatchObject({ nodeSelector, tolerations, affinity, imagePullSecrets });
      expect(spec.template.spec).not.toHaveProperty("priorityClassName");
    }
    // Helm merges given values with its defaults.
    const resourcesOf = (name: string) => {
      const one = deployments.find(({ metadata }) => metadata?.name === name)?.spec.template.spec;
      return (one as { containers: readonly { resources: object }[] } | undefined)?.containers[0]?.resources;
    };
    expect(resourcesOf("sidecarset-serve")).toMatchObject(values.resources);
    expect(resourcesOf("sidecarset-rollout")).toMatchObject(values.rolloutResources);
    await expect(helmTemplate({ serve: { ...values, replicas: "three" } })).rejects.toThrow("at '/serve/replicas'");
  });

  it("the chart has a port for Prometheus, its PodMonitor, and alerts, if the values ask for them", async () => {
    const metrics = { enabled: true, podMonitor: true, prometheusRule: true, labels: { release: "prometheus" } };
    const objects = await helmTemplate({ serve: { enabled: true, maxUnavailable: "50%", metrics } });
    const kinds = objects.map(({ kind }) => kind);
    const plain = (await helmTemplate({ serve: { enabled: true } })).map(({ kind }) => kind);
    expect(kinds.filter((kind) => !plain.includes(kind)).toSorted()).toEqual(["PodMonitor", "PrometheusRule"]);
    const text = JSON.stringify(objects);
    expect(text.match(/--metrics-port=9090/g)).toHaveLength(2);
    expect(text.match(/"name":"metrics","containerPort":9090|"containerPort":9090,"name":"metrics"/g)).toHaveLength(2);
    expect(objects.find(({ kind }) => kind === "PodDisruptionBudget")).toMatchObject({
      spec: { maxUnavailable: "50%" },
    });
    const rule = objects.find(({ kind }) => kind === "PrometheusRule");
    expect(rule?.metadata?.labels).toEqual({ release: "prometheus" });
    expect(JSON.stringify(rule)).toContain("SidecarSet {{ $labels.sidecarset }} needs attention");
    expect(JSON.stringify(rule).match(/"alert":/g)?.length).toBeGreaterThanOrEqual(5);
  });

  it("the chart leaves out the fence if the values say so", async () => {
    const open: Values = { url: "https://x.example" };
    const wanted = installation({ url: open.url }, { isUnfenced: true });
    expectSame(await helmTemplate({ ...open, fence: { enabled: false } }), wanted);
    expectSame(await terraform({ ...open, fence: false }), wanted);
    expectSame(objectsIn(await run(process.execPath, [...INSTALL, "--url", open.url, "--without-fence"])), wanted);
  });

  it("the chart lists annotations in the fence", async () => {
    const open: Values = { url: "https://x.example" };
    const listed = ["example.com/mesh", "logs.example.com/"];
    const wanted = installation({ url: open.url }, { fenceAnnotations: listed });
    expectSame(await helmTemplate({ ...open, fence: { annotations: listed } }), same(wanted));
    expectSame(await terraform({ ...open, fence_annotations: listed }), same(wanted));
    expectSame(await kustomize(open, '["example.com/mesh", "logs.example.com/"]'), wanted);
    const flags = ["--url", open.url, "--fence-annotations", listed.join(",")];
    expectSame(objectsIn(await run(process.execPath, [...INSTALL, ...flags])), wanted);
  });

  it("the chart leaves out an existing namespace if the values say so", async () => {
    const values: Values = { url: "https://x.example:9443/" };
    const objects = await helmTemplate({ ...values, namespace: { create: false } });
    expect(byName(objects)).toEqual(byName(expected(values).filter(({ kind }) => kind !== "Namespace")));
  });
});

describe("by the commands of docs/deploy-by-hand.md, for functions with URLs of their own", () => {
  it("the commands print the same objects", async () => {
    const document = await readFile(join(ROOT, "docs/deploy-by-hand.md"), "utf8");
    const [, commands = ""] = /## 4\. Register[\s\S]*?```sh\n([\s\S]*?)```/.exec(document) ?? [];
    const [defined = ""] = /^url\(\) .*$/m.exec(document) ?? [];
    await writeFile(join(folder, "path-secrets"), `${SECRET}\n`);
    const stubs = `cd ${ROOT}
output() { echo "https://$(echo "$1" | tr 'A-Z' 'a-z').example.com/"; }
kubectl() { cat; }
${defined}
`;
    const given = commands.replace("--path-secrets path-secrets", `--path-secrets ${join(folder, "path-secrets")}`);
    expect(given).not.toBe(commands);
    const objects = objectsIn(await run("bash", ["-euc", stubs + given]));
    const host = (name: string) => `https://${name}lambdafunctionurl.example.com`;
    const urls = {
      "/mutate-pod": host("mutatedashpod"),
      "/mutate-apps-kruise-io-sidecarset": host("mutatedashsidecarset"),
      "/announce-apps-kruise-io-sidecarset": host("validatedashsidecarset"),
      "/convert": host("convertdashsidecarset"),
    };
    expectSame(objects, expected({ url: "https://unused.example.com", pathSecret: SECRET, urls }));
  });
});

describe("functions by Terraform", () => {
  const PACKAGE = join(ROOT, ".cache", "package");
  const TEMPLATE = join(PACKAGE, "cloudformation-template-update-stack.json");

  it("the Terraform module has the functions of serverless.yml, with their code in the user's own bucket", async () => {
    if (!existsSync(TEMPLATE)) await run("npm", ["run", "--silent", "package", "--", "--package", PACKAGE]);
    const packaged = JSON.parse(await readFile(TEMPLATE, "utf8"));
    const { body, code } = await terraformOutputs("template", { package: PACKAGE, bucket: "our-code" });
    const made = JSON.parse(body as string);
    const dropped = ["ServerlessDeploymentBucket", "ServerlessDeploymentBucketPolicy"];
    expect(Object.keys(made.Resources).toSorted()).toEqual(
      Object.keys(packaged.Resources)
        .filter((name) => !dropped.includes(name))
        .toSorted(),
    );
    const functions = Object.keys(made.Resources).filter(
      (name) => made.Resources[name].Type === "AWS::Lambda::Function",
    );
    expect(functions.length).toBeGreaterThanOrEqual(6);
    for (const [name, resource] of Object.entries(made.Resources)) {
      const wanted = structuredClone(packaged.Resources[name]);
      if (functions.includes(name)) wanted.Properties.Code.S3Bucket = "our-code";
      expect(resource, name).toEqual(wanted);
    }
    for (const [key, file] of Object.entries(code as Record<string, string>))
      expect([key.split("/").at(-1), existsSync(file)]).toEqual([file.split("/").at(-1), true]);
    expect(Object.keys(code as object).toSorted()).toEqual(
      functions.map((name) => made.Resources[name].Properties.Code.S3Key).toSorted(),
    );
    expect(Buffer.byteLength(body as string)).toBeLessThan(51_200);
  });

  it("the module outputs existing URLs", async () => {
    const module = await readFile(join(ROOT, "infra/terraform/functions/main.tf"), "utf8");
    const named = [...module.matchAll(/= "(\w+LambdaFunctionUrl)"/g)].map(([, output]) => output ?? "");
    const { Outputs } = JSON.parse(await readFile(TEMPLATE, "utf8"));
    expect(named).toHaveLength(4);
    expect(Object.keys(Outputs)).toEqual(expect.arrayContaining(named));
  });
});

describe("bad values get one sentence", () => {
  const helmRows = [
    [{}, "url is missing: where the webhooks answer"],
    [{ url: "http://x.example" }, "at '/url'"],
    [{ url: "https://x.example", pathSecrets: { "/mutate-pod": "short" } }, "at '/pathSecrets/~1mutate-pod'"],
    [{ url: "https://x.example", pathSecrets: { "/mutate-pod": SECRET } }, "pathSecrets has none for /"],
    [{ url: "https://x.example", pathSecret: SECRET }, "additional properties 'pathSecret' not allowed"],
    [{ url: "https://x.example", feature: { launchOrder: true } }, "additional properties 'feature' not allowed"],
  ] as const;
  it.each(helmRows)("Helm refuses %j in one sentence", async (values, message) => {
    await expect(helmTemplate(values)).rejects.toThrow(message);
  });

  const terraformRows: readonly (readonly [TerraformValues, string])[] = [
    [{ url: "http://x.example" }, "API servers call https only"],
    [{ url: "https://x.example", path_secrets: { "/mutate-pod": "short" } }, "expected 256 bits in base64url"],
    [{ url: "https://x.example", features: ["launchorder"] }, "one of them is unknown"],
  ];
  it.each(terraformRows)("Terraform refuses %j in one sentence", async (values, message) => {
    await expect(terraform(values)).rejects.toThrow(message);
  });
});

it("terraform fmt changes no Terraform file", async () => {
  await run("terraform", ["fmt", "-check", "-recursive", "-diff", "infra/terraform"]);
});
