/** `preview`: a pod as it would be stored, with its sidecars. */
import type { ControllerRevision, KubernetesObject, Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { listRevisions } from "../../../shared/controller/rollout/observe-pods.ts";
import { readNamespace, readRegistrations } from "../../../shared/controller/rollout/read-observation.ts";
import { type Preview, podRefusals, podsOf, previewPod } from "../../../shared/core/injection/preview.ts";
import {
  namespaceNamed,
  OWN_REGISTRATION,
  type Registrations,
  traceRegistration,
} from "../../../shared/core/inspect/explain/registration.ts";
import type { Step } from "../../../shared/core/inspect/explain/step.ts";
import { wantedRevision } from "../../../shared/core/sidecarset/revision/wanted-revision.ts";
import { fieldsBeyond, minorVersion, newerFields } from "../../../shared/core/sidecarset/validate/newer-fields.ts";
import { type Cluster, readServerFacts } from "../../../shared/kube/port.ts";
import { writeYaml } from "../../../shared/kube/yaml.ts";
import { readConfig } from "../../../shared/settings/config.ts";
import { warnOfReplaced } from "../../../shared/webhook/review/admission-warnings.ts";
import { admissionResponse } from "../../../shared/webhook/review/response.ts";
import { lint } from "../../library/lint.ts";
import { kindText } from "../../library/pass-input.ts";
import { type ReadObject, readObjects } from "../../terminal/read-objects.ts";
import { CliError, type Part } from "../../terminal/screen.ts";
import type { Command } from "../command.ts";
import {
  gatesOfLint,
  isSidecarSet,
  placeOfFinding,
  readNeighbours,
  requireValid,
  storedForm,
  warnOf,
  warnOfRepeated,
} from "../input/given-set.ts";
import { listSets, nowText } from "../input/read-set.ts";
import type { Output, Session } from "../session.ts";

const REFUSED = 3;

export const PREVIEW: Command = {
  name: "preview",
  group: "Before a change",
  summary: "a pod after injection, as YAML or as a diff",
  details:
    "Takes pods, and the pods of whatever has a pod template. SidecarSets in the files take part as if they were stored; without any, or with --cluster, so do those of the cluster. The patch is the webhook's own, byte for byte. What the API server adds to a pod before it asks the webhook (defaults, the service account's volume) is not there.",
  options: [
    { flags: "-f, --filename <FILE>", about: "pods, workloads, SidecarSets, Namespaces; - is stdin", isList: true },
    { flags: "--cluster", about: "the cluster's SidecarSets too; those in the files take their place" },
  ],
  outputs: ["yaml", "diff", "json", "patch"],
  examples: [
    "sidecarset preview -f web.yaml -f log-agent.yaml -o diff   # no cluster is asked",
    "kubectl create deployment web --image nginx --dry-run=client -o yaml | sidecarset preview -f -",
  ],
  exits: ["3 the webhook, or the API server, would refuse a pod"],
  run: async (input, session) => {
    const files = input.list("filename");
    if (files.length === 0) throw new CliError("-f is missing: the file of a pod or workload, or - for stdin");
    const objects = await readObjects(files);
    const others = objects.filter(({ object }) => !isSidecarSet(object) && object.kind !== "Namespace");
    const pods = others.flatMap(({ object }) => podsOf(object).map((pod) => ({ pod, owner: object })));
    if (pods.length === 0)
      throw new CliError(`${files.join(", ")}: no pod and nothing with a pod template in there; add one with -f`);
    const written = objects.filter(({ object }) => isSidecarSet(object));
    const given = written.map(storedForm);
    const cluster = given.length === 0 || input.isSet("cluster") ? await session.cluster() : undefined;
    const known = await neighbours(session, given, cluster);
    await refuseInvalid(session, written, cluster);
    sayPassedOver(others, session);
    warnOfRepeated(others, session.screen);
    const registrations = cluster === undefined ? [OWN_REGISTRATION] : await readRegistrations(cluster);
    const world = { ...known, objects, cluster, registrations };
    const previews: Shown[] = [];
    for (const one of pods) previews.push(await previewOne(one, session, world));
    const injected = previews.flatMap((one) => one.injected);
    if (cluster !== undefined) await warnOfVersion(session, known.sidecarSets, injected);
    for (const [index, one] of previews.entries()) show(one, index, session);
    if (session.output === "json") showJson(previews, session);
    return previews.some(({ pod }) => pod === undefined) ? REFUSED : 0;
  },
};

/** The kind and name of the file's object: a Pod, or a workload with its template. */
function objectText(object: KubernetesObject): string {
  const { name, generateName } = object.metadata ?? {};
  return `${object.kind ?? "object"} ${name ?? generateName ?? "without a name"}`;
}

/**
 * Prints the webhook's warnings of a SidecarSet; a check of files alone misses facts of the cluster.
 * @throws CliError if it would be refused
 */
async function refuseInvalid(
  session: Session,
  written: readonly ReadObject[],
  cluster: Cluster | undefined,
): Promise<void> {
  warnOf(written, session.screen);
  if (cluster !== undefined) {
    for (const one of written) {
      const sidecarSet = storedForm(one);
      requireValid(sidecarSet, undefined, one.place, await readNeighbours(session, cluster, sidecarSet));
    }
    return;
  }
  const objects = written.map(({ object }) => object);
  const [wrong] = lint({ objects, featureGates: gatesOfLint() }).filter(({ severity }) => severity === "error");
  if (wrong !== undefined) throw new CliError(`${placeOfFinding(wrong, written)}: ${wrong.message}; correct it there`);
}

/** Prints warnings about fields of the injected SidecarSets that this API server drops, or refuses in pods. */
async function warnOfVersion(session: Session, all: readonly SidecarSet[], injected: readonly string[]): Promise<void> {
  const used = all.filter((one) => injected.includes(one.metadata?.name ?? "") && newerFields(one).length > 0);
  if (used.length === 0) return;
  const facts = await readServerFacts(await session.access(), Date.now).catch(() => undefined);
  const minor = minorVersion(facts?.version.gitVersion ?? "");
  if (minor === undefined)
    return session.screen.warn("the version of the API server is not known, and so not which fields it drops");
  for (const one of used)
    for (const text of fieldsBeyond(one, minor)) session.screen.warn(`SidecarSet ${one.metadata?.name}: ${text}`);
}

interface Known {
  readonly sidecarSets: readonly SidecarSet[];
  readonly revisions: readonly ControllerRevision[];
}

async function neighbours(
  session: Session,
  given: readonly SidecarSet[],
  cluster: Cluster | undefined,
): Promise<Known> {
  if (cluster === undefined) return { sidecarSets: given, revisions: [] };
  const names = new Set(given.map(({ metadata }) => metadata?.name));
  const others = (await listSets(cluster)).filter(({ metadata }) => !names.has(metadata?.name));
  const sidecarSets = [...given, ...others];
  const pinned = sidecarSets.flatMap((one) => (wantedRevision(one) ? [one.metadata?.name ?? ""] : []));
  const revisions = await Promise.all(pinned.map((name) => listRevisions(cluster, session.kruiseNamespace, name)));
  return { sidecarSets, revisions: revisions.flat() };
}

interface World extends Known {
  readonly objects: readonly ReadObject[];
  readonly cluster: Cluster | undefined;
  readonly registrations: Registrations;
}

/** Names skipped objects: Helm charts hold Services and ConfigMaps beside workloads. */
function sayPassedOver(others: readonly ReadObject[], { screen }: Session): void {
  const without = others.filter(({ object }) => podsOf(object).length === 0);
  const kinds = new Map<string, number>();
  for (const { object } of without) kinds.set(kindText(object), (kinds.get(kindText(object)) ?? 0) + 1);
  const text = [...kinds].map(([kind, count]) => (count === 1 ? kind : `${count} × ${kind}`)).join(", ");
  if (without.length > 0) screen.warn(`passed over, because they have no pod template: ${text}`);
}

/** A pod, and the object in the file that defines it. */
interface Planned {
  readonly pod: Pod;
  readonly owner: KubernetesObject;
}

interface Shown extends Preview {
  readonly from: string;
  /** SidecarSets that a pause keeps from being injected */
  readonly paused: readonly string[];
  /** whether the API server asks the webhook about the pod */
  readonly asked: Step;
  /** the API server's reasons to refuse the pod after the webhook */
  readonly refusals: readonly string[];
}

async function previewOne({ pod, owner }: Planned, session: Session, world: World): Promise<Shown> {
  const namespace =
    pod.metadata?.namespace || session.givenNamespace || (await defaultNamespace(session, world.cluster));
  const { kruiseNamespace, featureGates: own } = readConfig();
  const { sidecarSets, revisions, cluster } = world;
  const gates = cluster === undefined ? own : { ...own, ...(await session.passSettings(cluster)) };
  const namespaceObject = await namespaceIn(namespace, world);
  const subject = { pod, namespace, namespaceObject, revisions };
  const { registrations } = world;
  const asked = traceRegistration(
    { ...pod, metadata: { ...pod.metadata, namespace } },
    { namespace: namespaceObject ?? namespaceNamed(namespace), registrations, sidecarSets },
  );
  const context = { now: nowText(), random: Math.random, kruiseNamespace, gates };
  const paused = sidecarSets.filter(({ spec }) => spec.injectionStrategy?.paused);
  const { request, ...decided } = previewPod({ ...subject, sidecarSets }, context);
  const isLeftOut = asked.verdict === "stop" && asked.reason !== "WebhookNotRegistered";
  const alone = { admission: { kind: "allowed" }, pod, injected: [] } as const;
  const preview = isLeftOut ? alone : { ...decided, admission: warnOfReplaced(request, decided.admission) };
  const refusals = preview.pod === undefined ? [] : podRefusals(preview.pod, owner);
  return {
    from: objectText(owner),
    request,
    ...preview,
    ...(refusals.length > 0 ? { pod: undefined } : {}),
    refusals,
    asked,
    paused: isLeftOut ? [] : previewPod({ ...subject, sidecarSets: paused.map(withoutPause) }, context).injected,
  };
}

function withoutPause({ spec, ...rest }: SidecarSet): SidecarSet {
  return { ...rest, spec: { ...spec, injectionStrategy: { ...spec.injectionStrategy, paused: false } } };
}

function defaultNamespace(session: Session, cluster: Cluster | undefined): Promise<string> | string {
  return cluster === undefined ? "default" : session.namespace();
}

async function namespaceIn(name: string, { objects, cluster }: World): Promise<Namespace | undefined> {
  const given = objects.find(({ object: { kind, metadata } }) => kind === "Namespace" && metadata?.name === name);
  if (given === undefined) return cluster && readNamespace(cluster, name);
  const { metadata } = given.object;
  return {
    ...given.object,
    metadata: { ...metadata, labels: { "kubernetes.io/metadata.name": name, ...metadata?.labels } },
  };
}

function show(preview: Shown, index: number, session: Session): void {
  const { pod, from } = preview;
  const { screen, output } = session;
  for (const remark of remarksOn(preview)) screen.warn(`${from}: ${remark}`);
  if (pod === undefined) return;
  const separator = index > 0 && output === "yaml" ? "---\n" : "";
  if (output === "diff") showDiff(preview, session);
  else if (output !== "json") screen.text(`${separator}${textOf(preview, pod as KubernetesObject, output)}`);
}

/** Warnings of the API server, and reasons why sidecars are missing. */
function remarksOn({ admission, asked, refusals, paused, injected }: Shown): readonly string[] {
  if (admission.kind === "denied") return [`the webhook would refuse the pod: ${admission.message}`];
  const warnings = admission.warnings ?? [];
  if (refusals.length > 0) return [...warnings, `the API server would refuse the pod: ${refusals.join(", ")}`];
  return [...warnings, ...askedRemark(asked), ...injectionRemark(paused, injected, asked)];
}

function askedRemark({ reason, verdict, message }: Step): readonly string[] {
  if (verdict === "ok") return [];
  return reason === "WebhookNotRegistered" ? [`${message}; this is what the webhook would do`] : [message];
}

function injectionRemark(paused: readonly string[], injected: readonly string[], { verdict }: Step): readonly string[] {
  if (paused.length > 0) return [`injection is paused for ${paused.join(", ")}`];
  if (injected.length > 0 || verdict === "stop") return [];
  return ["no SidecarSet is meant for this pod; sidecarset explain tells why of one that runs"];
}

/** Prints one pod alone, several as a List, as kubectl does. Refused pods are left out. */
function showJson(previews: readonly Shown[], { screen }: Session): void {
  const items = previews.flatMap(({ pod }) => pod ?? []);
  const value = previews.length > 1 ? { apiVersion: "v1", kind: "List", items } : items[0];
  if (value !== undefined) screen.text(`${JSON.stringify(value, null, 2)}\n`);
}

function textOf({ admission, request }: Preview, pod: KubernetesObject, output: Output): string {
  if (output === "yaml") return writeYaml(pod);
  const { patch } = admissionResponse(request, admission);
  return `${patch === undefined ? "[]" : Buffer.from(patch, "base64").toString()}\n`;
}

function showDiff({ request, pod }: Preview, { screen }: Session): void {
  for (const part of diffLines(writeYaml(request.object), writeYaml(pod))) screen.line(part);
}

/** The lines in which two texts differ, as `diff -u` shows them. */
type Kind = "same" | "added" | "removed";

interface Line {
  readonly kind: Kind;
  readonly text: string;
}

const CONTEXT = 3;

/** All lines of the texts, with one line of dots between distant changes. */
export function diffLines(before: string, after: string): readonly Part[] {
  const lines = compare(before.trimEnd().split("\n"), after.trimEnd().split("\n"));
  const changed = lines.flatMap(({ kind }, index) => (kind === "same" ? [] : [index]));
  const isShown = (index: number) => changed.some((one) => Math.abs(one - index) <= CONTEXT);
  return lines.flatMap((line, index) => {
    if (isShown(index)) return [shown(line)];
    return index > 0 && isShown(index - 1) ? [{ text: "  …", color: "dim" } as const] : [];
  });
}

function shown({ kind, text }: Line): Part {
  if (kind === "same") return `  ${text}`;
  return kind === "added" ? { text: `+ ${text}`, color: "green" } : { text: `- ${text}`, color: "red" };
}

/** Compares lines by their longest common subsequence. Manifests have hundreds of lines, not millions. */
function compare(before: readonly string[], after: readonly string[]): readonly Line[] {
  const lengths = commonLengths(before, after);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const line = lineAt(before[i], after[j], at(lengths, i + 1, j) >= at(lengths, i, j + 1));
    lines.push(line);
    if (line.kind !== "added") i++;
    if (line.kind !== "removed") j++;
  }
  return lines;
}

function lineAt(old: string | undefined, young: string | undefined, isRemovedFirst: boolean): Line {
  if (old === undefined) return { kind: "added", text: young ?? "" };
  if (old === young) return { kind: "same", text: old };
  if (young === undefined || isRemovedFirst) return { kind: "removed", text: old };
  return { kind: "added", text: young };
}

/** [i][j]: number of lines that the rest of `before` from i on and the rest of `after` from j on have in common. */
function commonLengths(before: readonly string[], after: readonly string[]): readonly (readonly number[])[] {
  const lengths: number[][] = [Array(after.length + 1).fill(0)];
  for (const old of before.toReversed()) {
    const below = lengths[0] ?? [];
    const row = [0];
    for (const [index, young] of [...after.entries()].toReversed())
      row.unshift(old === young ? (below[index + 1] ?? 0) + 1 : Math.max(below[index] ?? 0, row[0] ?? 0));
    lengths.unshift(row);
  }
  return lengths;
}

function at(lengths: readonly (readonly number[])[], i: number, j: number): number {
  return lengths[i]?.[j] ?? 0;
}
