import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { accessObjects } from "../../infra/rbac/access.ts";
import { clientConfig } from "../../infra/webhooks/address.ts";
import { runCli } from "../cli/run-cli.ts";

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

test("there are manifests, and each is of the namespace of ours", () => {
  expect(manifests.map(([title]) => title)).toEqual([
    "deployment.yaml: Deployment sidecarset-serve",
    "deployment.yaml: Service sidecarset-serve",
    "deployment.yaml: PodDisruptionBudget sidecarset-serve",
    "knative.yaml: Service sidecarset-serve",
    "knative.yaml: CronJob sidecarset-tick",
  ]);
  for (const [, { metadata }] of manifests) expect(metadata.namespace).toBe("kruise-system");
});

describe.each(pods)("%s", (_, { serviceAccountName, containers, volumes = [] }) => {
  test("runs as an account of ours, without privileges and without a secret in its environment", () => {
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

  test("has arguments that the command line takes: it gets as far as the files that are not there", async () => {
    const [{ args }] = containers as [Container];
    for (const path of args.flatMap((arg) => /=(\/.*)$/.exec(arg)?.[1] ?? [])) expect(existsSync(path)).toBe(false);
    const environment = { KUBECONFIG: "", HOME: "/none", KUBERNETES_SERVICE_HOST: "127.0.0.1" };
    const { code, stderr } = await runCli(args, environment);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^(\/secrets\/path-secrets cannot be read: there is no such file|\/var\/run\/secrets\/.* cannot be read \(ENOENT\).*)\n$/,
    );
  });
});

test("the Dockerfile copies what is there, and starts the command line as nobody in particular", () => {
  const lines = readFileSync("infra/container/Dockerfile", "utf8").split("\n");
  const copied = lines.flatMap((line) => (/^COPY (?!--)(.*) \S+$/.exec(line)?.[1] ?? "").split(" ").filter(Boolean));
  expect(copied).toEqual(["package.json", "package-lock.json", ".npmrc", "package.json", "functions", "shared"]);
  for (const path of copied) expect(existsSync(path), path).toBe(true);
  expect(lines).toContain("USER 65532:65532");
  expect(lines).toContain('ENTRYPOINT ["node", "functions/cli.mjs"]');
  const kept = readFileSync("infra/container/Dockerfile.dockerignore", "utf8").split("\n");
  for (const path of copied) expect(kept).toContain(`!${path}`);
});

test("a Service of the cluster is registered as one", () => {
  const pathSecret = "s".repeat(43);
  const address = { url: "https://sidecarset-serve.kruise-system.svc", caBundle: "Q0E=", pathSecret };
  const service = { namespace: "kruise-system", name: "sidecarset-serve", port: 443, path: `/s/${pathSecret}/convert` };
  expect(clientConfig(address, "/convert")).toEqual({ service, caBundle: "Q0E=" });
  expect(clientConfig({ url: "https://example.com/", pathSecret }, "/convert")).toEqual({
    url: `https://example.com/s/${pathSecret}/convert`,
  });
});
