import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { accessObjects } from "../../shared/install/rbac/access.ts";
import { clientConfig } from "../../shared/install/webhooks/address.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { runCli } from "../cli/run-cli.ts";
import { buildImage, IS_ISOLATED, runInImage } from "../platforms/image.ts";

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly object[];
  readonly securityContext: object;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}
interface PodSpec {
  readonly serviceAccountName: string;
  readonly containers: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly template?: { readonly spec: PodSpec };
    readonly jobTemplate?: { readonly spec: { readonly template: { readonly spec: PodSpec } } };
    readonly ports?: readonly { readonly port: number }[];
  };
}

const FILES = ["deployment.yaml", "knative.yaml"];
const manifests = FILES.flatMap((file) =>
  parseAllDocuments(readFileSync(join("infra/container", file), "utf8")).map((document): [string, Manifest] => {
    expect(document.errors).toEqual([]);
    const manifest = document.toJS() as Manifest;
    return [`${file}: ${manifest.kind} ${manifest.metadata.name}`, manifest];
  }),
);
const pods = manifests.flatMap(([title, { spec }]): [string, PodSpec][] => {
  const template = spec.template ?? spec.jobTemplate?.spec.template;
  return template === undefined ? [] : [[title, template.spec]];
});

test("the manifests of infra/container have the expected objects, all in the namespace kruise-system", () => {
  expect(manifests.map(([title]) => title)).toEqual([
    "deployment.yaml: Deployment sidecarset-serve",
    "deployment.yaml: Service sidecarset-serve",
    "deployment.yaml: PodDisruptionBudget sidecarset-serve",
    "deployment.yaml: Deployment sidecarset-rollout",
    "knative.yaml: Service sidecarset-serve",
    "knative.yaml: CronJob sidecarset-tick",
  ]);
  for (const [, { metadata }] of manifests) expect(metadata.namespace).toBe("kruise-system");
});

test("a rolling update of serve keeps every old pod until a new pod is ready, and a pod waits before it stops", () => {
  const [, serve] = manifests[0] ?? [];
  expect(serve?.spec).toMatchObject({
    strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
  });
  const [container] = serve?.spec.template?.spec.containers ?? [];
  expect(container).toMatchObject({
    readinessProbe: { httpGet: { path: "/readyz" } },
    lifecycle: { preStop: { sleep: { seconds: 5 } } },
  });
});

describe.each(pods)("%s:", (_, { serviceAccountName, containers, volumes = [] }) => {
  test("the pod runs as a service account of the manifests, unprivileged and without environment variables", () => {
    const accounts = accessObjects().filter(({ kind }) => kind === "ServiceAccount");
    expect(accounts.map(({ metadata }) => metadata?.name)).toContain(serviceAccountName);
    expect(containers).toHaveLength(1);
    for (const { env, securityContext, volumeMounts = [] } of containers) {
      expect(env).toBeUndefined();
      expect(securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      for (const { name } of volumeMounts) expect(volumes.map((volume) => volume.name)).toContain(name);
    }
  });

  test("the command line accepts the pod's arguments and fails only because the mounted files do not exist", async () => {
    const [{ args }] = containers as [Container];
    for (const path of args.flatMap((arg) => /=(\/.*)$/.exec(arg)?.[1] ?? [])) expect(existsSync(path)).toBe(false);
    // Knative sets these variables.
    const environment = { KUBECONFIG: "", HOME: "/none", KUBERNETES_SERVICE_HOST: "127.0.0.1", PORT: "8080" };
    const { code, stderr } = await runCli(args, environment);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^(\/secrets\/path-secrets cannot be read: there is no such file|\/var\/run\/secrets\/.* cannot be read \(ENOENT\).*)\n$/,
    );
  });
});

const DOCKERFILE = readFileSync("infra/container/Dockerfile", "utf8");

test("the Dockerfile copies only existing paths, copies every workspace and sets an unprivileged user", () => {
  const lines = DOCKERFILE.split("\n");
  const copied = lines.flatMap((line) => (/^COPY (?!--)(.*) \S+$/.exec(line)?.[1] ?? "").split(" ").filter(Boolean));
  const { workspaces } = JSON.parse(readFileSync("package.json", "utf8")) as { workspaces: readonly string[] };
  const packages = workspaces.filter((folder) =>
    copied.some((path) => path === folder || path === `${folder}/package.json`),
  );
  expect(packages).toEqual(workspaces);
  expect(copied).toEqual(
    expect.arrayContaining(["package.json", "package-lock.json", ".npmrc", "functions", "shared", "infra"]),
  );
  for (const path of copied) expect(existsSync(path), path).toBe(true);
  expect(lines).toContain("USER 65532:65532");
  const kept = readFileSync("infra/container/Dockerfile.dockerignore", "utf8").split("\n");
  for (const path of copied) expect(kept).toContain(`!${path.split("/")[0]}`);
});

/** The most bytes that the image may add to its base image; it adds 2.48 MB. */
const MOST_BYTES = 2_600_000;

test("the image is smaller than 2.6 MB and runs the command line without other files", () => {
  const image = buildImage();
  const run = (...args: readonly string[]) =>
    spawnSync(process.execPath, [...image.argv, ...args], { cwd: join(image.folder, "image"), encoding: "utf8" });
  expect(run("serve", "--help")).toMatchObject({ status: 0, stderr: "" });
  const started = run("serve", "--port=0", "--no-tls", "--insecure", "--kubeconfig=/none");
  expect([started.status, started.stderr]).toEqual([1, expect.stringMatching(/^[^\n]*\/none[^\n]*\n$/)]);
  expect(image.bytes).toBeGreaterThan(100_000);
  expect(image.bytes).toBeLessThan(MOST_BYTES);
  image.remove();
});

test.runIf(IS_ISOLATED)("a process in the image runs as user 65532 and can write only to /tmp", async () => {
  const image = buildImage();
  const tried = ["/written", "/mnt/image/written", "/var/tmp/written", "/tmp/written"];
  const script = `const fs = require("node:fs"); const able = ${JSON.stringify(tried)}.filter((path) => {
    try { fs.writeFileSync(path, ""); return true; } catch { return false; } });
    console.log(JSON.stringify([process.getuid(), process.getgid(), process.getgroups(), able]))`;
  const child = runInImage(image, ["--eval", script], {});
  const said = (await child.stdout?.setEncoding("utf8").toArray())?.join("");
  expect(JSON.parse(said ?? "")).toEqual([65_532, 65_532, [65_532], ["/tmp/written"]]);
  image.remove();
});

describe("infra/container/cloud-run.yaml:", () => {
  interface Run {
    readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
    readonly spec: {
      readonly template: { readonly spec: RunSpec & { readonly template?: { readonly spec: RunSpec } } };
    };
  }
  interface RunSpec {
    readonly containers: readonly (Omit<Container, "env"> & {
      readonly env: readonly { readonly name: string; readonly value: string }[];
      readonly ports?: readonly { readonly containerPort: number }[];
    })[];
    readonly volumes: readonly { readonly name: string }[];
  }
  const documents = parseAllDocuments(readFileSync("infra/container/cloud-run.yaml", "utf8"));
  const [service, job] = documents.map((document) => document.toJS() as Run) as [Run, Run];
  const specs = [service.spec.template.spec, job.spec.template.spec.template?.spec] as [RunSpec, RunSpec];

  test("the Cloud Run service lets everybody call it, and the webhooks authenticate their callers by a secret path", () => {
    expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
    expect(service.metadata.annotations).toMatchObject({ "run.googleapis.com/invoker-iam-disabled": "true" });
    const [{ args = [] } = {}] = specs[0].containers;
    expect(args).toEqual(expect.arrayContaining(["--no-tls", "--tick=never"]));
    expect(args.join()).toContain("--path-secrets=");
    expect(args.join()).not.toContain("--insecure");
  });

  test.each([0, 1])("container %i of cloud-run.yaml has no secret in a variable and mounts every volume", (at) => {
    const { containers, volumes } = specs[at] as RunSpec;
    const [{ env, volumeMounts = [] } = { env: [] }] = containers;
    expect(volumeMounts.length).toBeGreaterThan(0);
    expect(volumeMounts.map(({ name }) => name).toSorted()).toEqual(volumes.map(({ name }) => name).toSorted());
    for (const { value } of env) expect(value).toMatch(/^(https:|\/secrets\/)/);
  });

  test("the command line accepts the arguments of cloud-run.yaml and the variable PORT", async () => {
    for (const { containers } of specs) {
      const [{ args, env, ports } = { args: [], env: [] }] = containers;
      const given = Object.fromEntries(
        env.map(({ name, value }) => [name, value.replace("API-SERVER", "127.0.0.1:1")]),
      );
      const port = ports === undefined ? {} : { PORT: String(ports[0]?.containerPort) };
      const { code, stderr } = await runCli(args, { KUBECONFIG: "", HOME: "/none", ...given, ...port });
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]*\/secrets\/(ca|paths|token)\/value[^\n]*\n$/)]);
    }
  });
});

test("clientConfig registers the URL of a Service as a service and another URL as a URL", () => {
  const pathSecret = "s".repeat(43);
  const address = { url: "https://sidecarset-serve.kruise-system.svc", caBundle: "Q0E=", pathSecret };
  const service = {
    namespace: "kruise-system",
    name: "sidecarset-serve",
    port: 443,
    path: registeredPath(pathSecret, "/convert"),
  };
  expect(clientConfig(address, "/convert")).toEqual({ service, caBundle: "Q0E=" });
  expect(clientConfig({ url: "https://example.com/", pathSecret }, "/convert")).toEqual({
    url: `https://example.com${registeredPath(pathSecret, "/convert")}`,
  });
});
