/**
 * Tests that `diff` of a file shows no difference right after its apply: for the docs, the demo, and the objects of the
 * vectors.
 */
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { readYaml } from "../../shared/kube/yaml.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";
import { runHere } from "./run-cli.ts";

let cluster: ServedCluster;
beforeAll(async () => {
  cluster = await startServedCluster();
});
afterAll(() => cluster?.close());

const isSet = (value: unknown): value is KubernetesObject =>
  (value as KubernetesObject | null)?.kind === "SidecarSet" && (value as KubernetesObject).apiVersion !== undefined;
const texts = (folder: string, ending: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(ending))
    .map((name) => [`${folder}/${name}`, readFileSync(join(folder, name), "utf8")] as const);

/** Texts that each contain a whole SidecarSet. */
const SHOWN = [
  ...texts("docs", ".md").flatMap(([file, text]) =>
    [...text.matchAll(/```ya?ml\n([\s\S]*?)```/g)].map(([, block = ""]) => [file, block] as const),
  ),
  ...texts("infra/demo", ".yaml"),
].flatMap(([file, text]) =>
  text
    .split(/^---$/m)
    .filter((one) => /^kind: SidecarSet$/m.test(one) && /^ +containers:/m.test(one))
    .map((one) => [file, one] as const),
);
interface Vector {
  readonly name: string;
  readonly input: { readonly object?: unknown };
}
const VECTORS = texts("test/vectors/webhook", ".json").flatMap(([file, text]) =>
  (JSON.parse(text) as readonly Vector[]).flatMap(({ name, input }) =>
    isSet(input?.object) ? [[`${file} ${name}`, JSON.stringify(input.object)] as const] : [],
  ),
);

let files = 0;
const CONTAINER = '{name: agent, image: "agent:1"}';
const written = (spec: string, metadata = "name: a", version = "v1beta1") =>
  `apiVersion: apps.kruise.io/${version}\nkind: SidecarSet\nmetadata: {${metadata}}\nspec:\n  selector: {matchLabels: {app: web}}\n${spec}`;
/** An input for each class of mistake that users reported. */
const WRITTEN: readonly (readonly [string, string])[] = [
  [
    "octal modes and the YAML 1.1 booleans yes and on",
    written(
      `  containers: [{name: agent, image: "agent:1", stdin: on, env: [{name: A, value: "yes"}]}]\n  volumes: [{name: s, secret: {secretName: s, defaultMode: 0644}}]`,
    ),
  ],
  ["merge keys", written(`  containers:\n  - &base {name: agent, image: "agent:1"}\n  - {<<: *base, name: other}`)],
  [
    "quantities that are not canonical",
    written(
      '  containers: [{name: agent, image: "agent:1", resources: {limits: {memory: 1024Mi, cpu: 0.5}, requests: {cpu: 100m}}}]',
    ),
  ],
  [
    "a probe without its defaults",
    written('  containers: [{name: agent, image: "agent:1", livenessProbe: {httpGet: {port: 80}}}]'),
  ],
  [
    "fields of Kubernetes 1.34",
    written(
      '  containers: [{name: agent, image: "agent:1", restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}], restartPolicy: Never}]',
    ),
  ],
  [
    "an image volume",
    written(
      `  containers: [${CONTAINER}]\n  volumes: [{name: i, image: {reference: "x:1", pullPolicy: IfNotPresent}}]`,
    ),
  ],
  ["a misspelt field", written('  containers: [{name: agent, image: "agent:1", imagePullpolicy: Always}]')],
  [
    "an update strategy with percentages",
    written(`  containers: [${CONTAINER}]\n  updateStrategy: {maxUnavailable: 10%, partition: 50%}`),
  ],
  [
    "fields that are null",
    written(`  containers: [${CONTAINER}]\n  volumes: null\n  initContainers: null\n  updateStrategy: null`),
  ],
  [
    "empty lists and maps",
    written(
      `  containers: [${CONTAINER}]\n  volumes: []\n  initContainers: []\n  updateStrategy: {}\n  injectionStrategy: {}`,
    ),
  ],
  ["secrets without a name", written(`  containers: [${CONTAINER}]\n  imagePullSecrets: [{}, {name: pull}]`)],
  ["v1alpha1 with a namespace", written(`  namespace: default\n  containers: [${CONTAINER}]`, "name: a", "v1alpha1")],
  [
    "a custom version in a label",
    written(`  containers: [${CONTAINER}]`, 'name: a, labels: {apps.kruise.io/sidecarset-custom-version: "1"}'),
  ],
  ["metadata.namespace", written(`  containers: [${CONTAINER}]`, "name: a, namespace: default")],
];

/** Returns the output of diff for a manifest right after its apply; undefined: the API server refuses the manifest. */
async function diffOfApplied(text: string): Promise<string | undefined> {
  const [document] = readYaml(text);
  const given = document?.value as KubernetesObject;
  const version = given.apiVersion?.split("/")[1] ?? "";
  const resource = { ...SIDECARSETS, version };
  const created = await cluster.client.create(resource, given).catch((error: unknown) => {
    if (isKubeError(error)) return undefined;
    throw error;
  });
  if (created === undefined) return undefined;
  const file = join(cluster.folder, `${++files}.yaml`);
  await writeFile(file, text);
  const { stdout, stderr } = await runHere(["--kubeconfig", cluster.kubeconfig, "diff", "-f", file]);
  await cluster.client.delete(SIDECARSETS, { name: created.metadata?.name ?? "" });
  return `${stdout}${stderr}`;
}

it.each(SHOWN)("diff shows no difference for the SidecarSet in %s", async (_, text) => {
  expect(await diffOfApplied(text)).toContain(" is as it is stored.");
});

it.each(WRITTEN)("diff shows no difference for a SidecarSet with %s", async (_, text) => {
  expect(await diffOfApplied(text)).toContain(" is as it is stored.");
});

it(`diff shows no difference for any of ${VECTORS.length} SidecarSets of the vectors that an API server accepts`, async () => {
  const wrong: string[] = [];
  let taken = 0;
  for (const [name, text] of VECTORS) {
    const said = await diffOfApplied(text);
    if (said === undefined) continue;
    taken++;
    if (!/ is as it is stored[.]|has no metadata[.]name/.test(said)) wrong.push(`${name}: ${said}`);
  }
  expect(wrong).toEqual([]);
  expect(taken).toBeGreaterThan(100);
});
