/** The clusters of a fleet: their SidecarSets, the records of `fleet apply`, and its next writes. */
import { createHash } from "node:crypto";
import type { Namespace } from "../../../shared/api/kubernetes.ts";
import {
  FLEET_ANNOTATION,
  GIVEN_UP_ANNOTATION,
  HASH_ANNOTATION,
  UNDONE_ANNOTATION,
} from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { specChanges } from "../../../shared/core/inspect/diff/spec-changes.ts";
import { whyGivenUp } from "../../../shared/core/rollout/history/history.ts";
import { revisionData, revisionText } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { sortedGoJson } from "../../../shared/go/json/go-json.ts";
import { isJsonObject, jsonOf } from "../../../shared/go/json/json-object.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, NAMESPACES, type PatchOptions, SIDECARSETS } from "../../../shared/kube/port.ts";
import { secondText } from "../../../shared/time-text.ts";
import { within } from "../../../shared/webhook/server/http.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Input } from "../command.ts";
import type { Session } from "../session.ts";
import { storeUnlessChanged } from "./change-set.ts";
import { nowText } from "./read-set.ts";

/** A cluster that --contexts names. */
export interface FleetMember {
  /** name of the cluster's context */
  readonly name: string;
  readonly session: Session;
  readonly connect: () => Promise<Cluster>;
}

/** The SidecarSet that each cluster of a fleet should have. */
export interface Release {
  readonly name: string;
  /** the SidecarSet with defaults and hashes */
  readonly sidecarSet: SidecarSet;
  /** digest of the whole file */
  readonly digest: string;
}

/** The record that `fleet apply` keeps in an annotation of a SidecarSet. Times are RFC3339. */
interface FleetRecord {
  readonly release: string;
  /** digest of the revision before; empty if there was none */
  readonly from: string;
  /** digest of the SidecarSet after the write */
  readonly to: string;
  /** keys of the file's labels and annotations; a later release removes the keys that it lacks */
  readonly keys?: readonly string[];
  readonly at: string;
  /** time since which `fleet apply` sees the SidecarSet Ready */
  readonly readyAt?: string;
}

export interface MemberStanding {
  readonly member: FleetMember;
  /** the cluster's SidecarSet; undefined: it has none */
  readonly stored: SidecarSet | undefined;
  readonly record: FleetRecord | undefined;
}

/** Time limit for one answer of an API server, without --request-timeout. */
const REQUEST = "10s";
/** Time limit for all reads of one cluster before the first write. */
const MEMBER_SECONDS = 15;
const AT_ONCE = 10;

/** The clusters of --contexts. @throws CliError for a context that the kubeconfig lacks, or that is named twice */
export async function namedMembers(input: Input, session: Session): Promise<readonly FleetMember[]> {
  const names = input
    .required("contexts")
    .split(",")
    .flatMap((name) => name.trim() || []);
  if (names.length === 0) throw new CliError("--contexts: write contexts of the kubeconfig, as in a,b,c");
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new CliError(`--contexts: ${twice} is named twice; leave one out`);
  const known = await session.contexts();
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new CliError(`--contexts: the kubeconfig has no context ${unknown.join(", ")}; it has ${known.join(", ")}`);
  return names.map((name) => {
    const own = session.ofContext(name, REQUEST);
    return { name, session: own, connect: () => own.cluster() };
  });
}

/** Annotations that passes, commands and kubectl write in a cluster, and that releases do not carry. */
const OF_A_CLUSTER: ReadonlySet<string> = new Set([
  FLEET_ANNOTATION,
  UNDONE_ANNOTATION,
  GIVEN_UP_ANNOTATION,
  "kubectl.kubernetes.io/last-applied-configuration",
]);

/** Leaves out fields of the cluster that a file was copied from. */
export function releaseOfFile({ apiVersion, kind, metadata, spec }: SidecarSet): Release {
  const { name = "", labels = {}, annotations = {} } = metadata ?? {};
  const own = Object.fromEntries(Object.entries(annotations).filter(([key]) => !OF_A_CLUSTER.has(key)));
  const digest = createHash("sha256")
    .update(sortedGoJson({ spec, labels, annotations: own }))
    .digest("hex");
  const sidecarSet = { apiVersion, kind, metadata: { name, labels, annotations: own }, spec } as SidecarSet;
  return { name, sidecarSet, digest: digest.slice(0, 10) };
}

/** Reads a few clusters at a time, in their order. A slow read is cancelled, so `work` must write nothing. */
export function readEachMember<T>(members: readonly FleetMember[], work: (member: FleetMember) => Promise<T>) {
  return forEachMember(members, (member) =>
    within(MEMBER_SECONDS * 1_000, () => work(member)).catch((error: Error) => {
      throw error.name === "DeadlineError" ? new Error(`no answer within ${MEMBER_SECONDS} seconds`) : error;
    }),
  );
}

/** Runs `work` for a few clusters at a time, in their order. */
export async function forEachMember<T>(
  members: readonly FleetMember[],
  work: (member: FleetMember) => Promise<T>,
): Promise<readonly (T | Error)[]> {
  const all: (T | Error)[] = [];
  for (let index = 0; index < members.length; index += AT_ONCE)
    all.push(
      ...(await Promise.all(
        members.slice(index, index + AT_ONCE).map((member) => work(member).catch((error: Error) => error)),
      )),
    );
  return all;
}

/** The state of a cluster's SidecarSet. @throws KubeError */
export async function readStanding(member: FleetMember, name: string): Promise<MemberStanding> {
  const cluster = await member.connect();
  const stored = await cluster.get<SidecarSet>(SIDECARSETS, { name }).catch((error: unknown) => {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  });
  return { member, stored, record: stored && fleetRecord(stored) };
}

/** The identity of a cluster, because two contexts may name the same cluster; undefined: the caller may not read it. */
async function clusterIdentity(member: FleetMember): Promise<string | undefined> {
  const cluster = await member.connect();
  const one = await cluster.get<Namespace>(NAMESPACES, { name: "kube-system" }).catch((error: unknown) => {
    if (isKubeError(error, 403)) return undefined;
    throw error;
  });
  return one?.metadata?.uid;
}

/** All identities of a cluster. They are the same through every context. @throws KubeError */
export async function identitiesOf({ member, stored }: MemberStanding): Promise<readonly string[]> {
  return [await clusterIdentity(member), stored?.metadata?.uid].filter((uid) => uid !== undefined);
}

export async function readIdentified(member: FleetMember, name: string) {
  const standing = await readStanding(member, name);
  const identities = await identitiesOf(standing);
  return { ...standing, identities, now: timeAt(await member.connect()) };
}

/** For each cluster, the name of an earlier context of the same cluster; undefined: none is known. */
export function twinsOf(
  members: readonly FleetMember[],
  read: readonly ({ readonly identities: readonly string[] } | Error)[],
): readonly (string | undefined)[] {
  const identities = read.map((one) => (one instanceof Error ? [] : one.identities));
  return identities.map((own, index) => {
    const first = identities.findIndex((others) => others.some((uid) => own.includes(uid)));
    return first === -1 || first === index ? undefined : members[first]?.name;
  });
}

/** Returns the time of the API server, which all callers share. A caller's wrong clock then shortens no soak time. */
export function timeAt(cluster: Cluster): string {
  const ms = cluster.serverTimeMs?.();
  return ms === undefined ? nowText() : secondText(ms);
}

function fleetRecord({ metadata }: SidecarSet): FleetRecord | undefined {
  const value = jsonOf(metadata?.annotations?.[FLEET_ANNOTATION]);
  if (!isJsonObject(value)) return undefined;
  const { release, from, to, at, keys, readyAt } = value;
  if (![release, from, to, at].every((text) => typeof text === "string")) return undefined;
  const known = { release, from, to, at, keys: Array.isArray(keys) ? keys : [] } as FleetRecord;
  return typeof readyAt === "string" ? { ...known, readyAt } : known;
}

/** Returns a digest of all that undo restores: the hashes in annotations leave volumes out. `data`: of a revision. */
export function releaseHash(data: unknown): string {
  return createHash("sha256").update(revisionText(data)).digest("hex").slice(0, 10);
}

/** Fields in which the file and the stored object differ. */
export function fieldsThatDiffer(stored: SidecarSet, { sidecarSet }: Release): readonly string[] {
  const inPlace = { NativeSidecarInPlaceUpdate: false, canResize: false };
  const paths = specChanges(stored, sidecarSet, inPlace).map(({ path }) => path);
  const written = KEYED.flatMap((kind) =>
    Object.entries(sidecarSet.metadata?.[kind] ?? {})
      .filter(([key, value]) => stored.metadata?.[kind]?.[key] !== value)
      .map(([key]) => `metadata.${kind}{${key}}`),
  );
  const isInFile = new Set(keysOf(sidecarSet));
  const gone = (fleetRecord(stored)?.keys ?? []).filter((key) => !isInFile.has(key) && keysOf(stored).includes(key));
  const isHash = (path: string) => path.startsWith("metadata.annotations{kruise.io/sidecarset-hash");
  const taken = gone.map((key) => `metadata.${key}`);
  return [...new Set([...paths, ...written, ...taken])].filter((path) => !isHash(path));
}

/** The keys of labels and annotations, as paths below metadata. */
function keysOf({ metadata }: SidecarSet): readonly string[] {
  return KEYED.flatMap((kind) => Object.keys(metadata?.[kind] ?? {}).map((key) => `${kind}{${key}}`));
}

const KEYED = ["labels", "annotations"] as const;

/** A merge patch: null removes a key that the last file had and this file lacks. */
function writtenKeys(kind: (typeof KEYED)[number], stored: SidecarSet, { sidecarSet }: Release) {
  const own = sidecarSet.metadata?.[kind] ?? {};
  const before = fleetRecord(stored)?.keys ?? [];
  const gone = Object.keys(stored.metadata?.[kind] ?? {}).filter(
    (key) => own[key] === undefined && before.includes(`${kind}{${key}}`),
  );
  return { ...own, ...Object.fromEntries(gone.map((key) => [key, null])) };
}

/**
 * The changes that the cluster needs for the release; empty: it has all of it.
 * @throws CliError if a write would undo another person's change
 */
export function planMember({ member, stored, record }: MemberStanding, release: Release): readonly string[] {
  if (stored === undefined) return ["new"];
  const changes = fieldsThatDiffer(stored, release);
  if (changes.length === 0) return record?.release === release.digest ? [] : ["the record of fleet apply"];
  const { name } = release;
  const tool = gitOpsTool(stored);
  if (tool !== undefined)
    throw new CliError(
      `SidecarSet ${name} differs from the file (${shortList(changes)}), and ${tool} writes it there; change it in Git, or leave the context out`,
    );
  if (record?.release !== release.digest) return changes;
  const givenUp = whyGivenUp(stored, podHash(release.sidecarSet));
  const how = givenUp === undefined ? "was changed" : `was ${givenUp}`;
  throw new CliError(
    `SidecarSet ${name} ${how} after fleet apply put this release there (${shortList(changes)}); take that change back, or give another file; to write this one again, first: kubectl --context ${member.name} annotate sidecarset ${name} ${FLEET_ANNOTATION}-`,
  );
}

/** The hash of the containers, which identifies a given up release. */
export function podHash({ metadata }: SidecarSet): string {
  return metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

const SHOWN = 3;

export function shortList(all: readonly string[]): string {
  const more = all.length > SHOWN ? [`${all.length - SHOWN} more`] : [];
  return [...all.slice(0, SHOWN), ...more].join(", ");
}

const TOOLS: readonly (readonly [RegExp, string])[] = [
  [/^argocd/, "Argo CD"],
  [/^(?:kustomize|helm)-controller$|^flux|toolkit\.fluxcd\.io/, "Flux"],
];

/** The GitOps tool that would restore Git's version; undefined: the object shows none. */
function gitOpsTool({ metadata }: SidecarSet): string | undefined {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly { readonly manager?: string }[] };
  const marks = [
    ...managedFields.map(({ manager = "" }) => manager),
    ...Object.keys({ ...metadata?.labels, ...metadata?.annotations }),
  ];
  return TOOLS.find(([pattern]) => marks.some((mark) => pattern.test(mark)))?.[1];
}

/** Writes the release with its record, if nobody else changed the SidecarSet since. @throws CliError or KubeError */
export async function storeRelease(
  { member, stored, record }: MemberStanding,
  release: Release,
  options: { readonly dryRun?: boolean } = {},
): Promise<SidecarSet> {
  const { sidecarSet, digest } = release;
  const cluster = await member.connect();
  const to = releaseHash(revisionData(sidecarSet));
  const before = stored === undefined ? "" : releaseHash(revisionData(stored));
  // The record of another release says nothing about the start and readiness of this release.
  const isSame = stored !== undefined && record?.to === to && fieldsThatDiffer(stored, release).length === 0;
  const next: FleetRecord = {
    release: digest,
    // A change of the strategy alone keeps the release to go back to.
    from: before === to && record?.to === to ? record.from : before,
    to,
    keys: keysOf(sidecarSet),
    at: isSame ? record.at : timeAt(cluster),
    ...(isSame && record.readyAt ? { readyAt: record.readyAt } : {}),
  };
  if (stored === undefined) {
    const metadata = { ...sidecarSet.metadata, annotations: recordedIn(sidecarSet.metadata?.annotations, next) };
    return cluster.create<SidecarSet>(SIDECARSETS, { ...sidecarSet, metadata }, options).catch((error: unknown) => {
      if (!isKubeError(error, 404)) throw error;
      throw new CliError("the cluster knows no SidecarSets; install them first: sidecarset install --help");
    });
  }
  const labels = writtenKeys("labels", stored, release);
  const annotations = writtenKeys("annotations", stored, release);
  const spec = replacingPatch(stored.spec, sidecarSet.spec);
  return patchMember(member, stored, { labels, annotations: recordedIn(annotations, next), spec }, options);
}

/** Records since when the release is Ready, so that a soak time can continue; undefined: the release is not Ready. */
export async function storeReadyAt(
  member: FleetMember,
  stored: SidecarSet,
  readyAt: string | undefined,
): Promise<void> {
  const record = fleetRecord(stored);
  if (record === undefined) return;
  const { readyAt: _, ...rest } = record;
  await patchMember(member, stored, {
    annotations: recordedIn({}, readyAt === undefined ? rest : { ...rest, readyAt }),
  });
}

function recordedIn<T extends string | null>(annotations: Readonly<Record<string, T>> = {}, record: FleetRecord) {
  return { ...annotations, [FLEET_ANNOTATION]: JSON.stringify(record) };
}

interface MemberChange {
  readonly labels?: Readonly<Record<string, string | null>>;
  readonly annotations: Readonly<Record<string, string | null>>;
  /** merge patch of the spec */
  readonly spec?: unknown;
}

export async function patchMember(
  { connect }: FleetMember,
  before: SidecarSet,
  { spec, ...metadata }: MemberChange,
  options: PatchOptions = {},
): Promise<SidecarSet> {
  const cluster = await connect();
  const { name = "", uid } = before.metadata ?? {};
  const store = (resourceVersion: string | undefined, given: PatchOptions) => {
    const body = { metadata: { uid, resourceVersion, ...metadata }, ...(spec === undefined ? {} : { spec }) };
    return cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body }, given);
  };
  const read = () => cluster.get<SidecarSet>(SIDECARSETS, { name });
  return (await storeUnlessChanged({ title: `SidecarSet ${name}`, before, read, store }, options)) as SidecarSet;
}

/** The merge patch from `before` to `after`: null removes a member. */
function replacingPatch(before: unknown, after: unknown): unknown {
  if (!isJsonObject(before) || !isJsonObject(after)) return after;
  const gone = Object.keys(before).filter((key) => after[key] === undefined);
  const rest = Object.entries(after).map(([key, value]) => [key, replacingPatch(before[key], value)]);
  return Object.fromEntries([...gone.map((key) => [key, null]), ...rest]);
}
