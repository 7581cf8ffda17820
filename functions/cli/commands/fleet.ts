/** `fleet apply`, `fleet status` and `fleet undo`: a SidecarSet in several clusters. The clusters keep all state. */

import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { explain } from "../../../shared/controller/rollout/dry-run.ts";
import { setRows } from "../../../shared/core/inspect/report/rows.ts";
import { natureOf } from "../../../shared/core/rollout/conditions/verdict.ts";
import { whyGivenUp } from "../../../shared/core/rollout/history/history.ts";
import { revisionData } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { counted } from "../../../shared/go/counted.ts";
import { addSeconds, secondsBetween } from "../../../shared/go/seconds-between.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { CliError, type Part } from "../../terminal/screen.ts";
import { printTable } from "../../terminal/table.ts";
import { type Command, Input } from "../command.ts";
import { recordedRevisions, undoChange } from "../input/change-set.ts";
import {
  type FleetMember,
  fieldsThatDiffer,
  forEachMember,
  identitiesOf,
  type MemberStanding,
  namedMembers,
  patchMember,
  planMember,
  podHash,
  type Release,
  readEachMember,
  readIdentified,
  readStanding,
  releaseHash,
  releaseOfFile,
  shortList,
  storeReadyAt,
  storeRelease,
  timeAt,
  twinsOf,
} from "../input/fleet-members.ts";
import { readGivenSets } from "../input/given-set.ts";
import { NOT_DONE, standingOf, watch, watchCode } from "../input/progress.ts";
import { type ReadSet, readFacts } from "../input/read-set.ts";
import type { Session } from "../session.ts";
import { cellsOf, HEADINGS, NEEDS_SOMEBODY } from "./status.ts";

const NOT_READ = 5;
const CONTEXTS = { flags: "--contexts <NAMES>", about: "contexts of the kubeconfig, in their order, as in a,b,c" };
const COMMON = { group: "Several clusters", outputs: ["table", "json", "yaml"] } as const;

export const FLEET_APPLY: Command = {
  ...COMMON,
  name: "fleet apply",
  summary: "take a SidecarSet through several clusters, one after another, and stop at the first that is not Ready",
  details:
    "First every cluster is read, and its API server and webhooks judge the change; unless all of them accept it, nothing is written. Then each cluster gets it, and the next one follows when the rollout is done, as status -w says it, and still is when the soak time is over. What is there stands in an annotation of the SidecarSet, so the same command goes on where it was stopped or killed.",
  options: [
    { flags: "-f, --filename <FILE>", about: "with the SidecarSet; - is stdin", isList: true },
    CONTEXTS,
    { flags: "--soak <DURATION>", about: "how long a cluster has it before the next one gets it; default: none" },
    { flags: "--timeout <DURATION>", about: "how long a cluster's rollout may take; default: as long as it takes" },
    { flags: "--dry-run", about: "say which cluster has what and what would change, and write nothing" },
  ],
  examples: [
    "sidecarset fleet apply -f log-agent.yaml --contexts test,eu,us --dry-run",
    "sidecarset fleet apply -f log-agent.yaml --contexts test,eu,us --soak 30m --timeout 2h",
  ],
  exits: [`${NOT_DONE} a cluster was not done in the end; those after it were left as they are`],
  run: async (input, session) => {
    const files = input.list("filename");
    if (files.length === 0) throw new CliError("-f is missing: the file of the SidecarSet, or - for stdin");
    const members = await namedMembers(input, session);
    const [given, second] = await readGivenSets(session.screen, files);
    if (given === undefined) return 0;
    if (second !== undefined)
      throw new CliError(
        `${second.place}: SidecarSet ${second.sidecarSet.metadata?.name} is the second one; give files with one SidecarSet`,
      );
    return applyFleet(input, session, { members, release: releaseOfFile(given.sidecarSet) });
  },
};

export const FLEET_STATUS: Command = {
  ...COMMON,
  name: "fleet status",
  summary: "where a SidecarSet stands in several clusters: its release, since when, and its rollout",
  arguments: [{ name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" }],
  options: [CONTEXTS],
  examples: ["sidecarset fleet status log-agent --contexts test,eu,us"],
  exits: [
    `${NEEDS_SOMEBODY} a rollout is Halted, Blocked, Degraded or NotUpgradable`,
    `${NOT_READ} a cluster could not be read`,
  ],
  run: async (input, session) => statusOfFleet(session, await namedMembers(input, session), input.argument(0)),
};

export const FLEET_UNDO: Command = {
  ...COMMON,
  name: "fleet undo",
  summary: "go back, in all clusters at once, to what each had before fleet apply",
  details:
    "In each cluster that has the release of the last fleet apply it does what undo does there: containers, volumes, pull secrets and patched metadata go back, within partition, waves and maxUnavailable; selectors and strategies stay. A cluster that does not have that release is left as it is, so the command can be repeated.",
  arguments: [{ name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" }],
  options: [CONTEXTS, { flags: "--dry-run", about: "let the API servers judge the changes, and store nothing" }],
  examples: ["sidecarset fleet undo log-agent --contexts test,eu,us"],
  run: async (input, session) => undoFleet(input, session, await namedMembers(input, session)),
};

interface Fleet {
  readonly members: readonly FleetMember[];
  readonly release: Release;
}

interface PlannedMember {
  readonly cluster: string;
  /** changes that the cluster still needs; empty: the cluster has the whole release */
  readonly changes: readonly string[];
  readonly problem?: string;
}

/** @returns the exit code */
export async function applyFleet(input: Input, session: Session, fleet: Fleet): Promise<number> {
  const { members, release } = fleet;
  const isDryRun = input.isSet("dry-run");
  // A mistyped option is refused before anything is written.
  for (const option of ["soak", "timeout"]) input.durationMs(option);
  const read = await readEachMember(members, (member) => judgeMember(member, release));
  const twins = twinsOf(members, read);
  const plan = read.map((one, index): PlannedMember => {
    const cluster = members[index]?.name ?? "";
    if (one instanceof Error) return { cluster, changes: [], problem: withoutSecrets(one.message) };
    const twin = twins[index];
    if (twin === undefined) return { cluster, changes: one.changes };
    return { cluster, changes: [], problem: `${sameAs(twin)}; leave one out` };
  });
  showPlan(session, plan, release);
  const problems = plan.filter(({ problem }) => problem !== undefined);
  for (const { cluster, problem } of problems) session.screen.warn(`${cluster}: ${problem}`);
  if (problems.length > 0) {
    session.screen.warn(`Nothing was changed: ${problems.length} of ${counted(plan.length, "cluster")} cannot get it.`);
    return twins.some((twin) => twin !== undefined) || read.some((one) => one instanceof CliError) ? 2 : 1;
  }
  return isDryRun ? 0 : takeThroughAll(input, session, fleet);
}

/** @returns the exit code */
async function takeThroughAll(input: Input, session: Session, fleet: Fleet): Promise<number> {
  const { members, release } = fleet;
  for (const [index, member] of members.entries()) {
    const soakMs = index === members.length - 1 ? 0 : (input.durationMs("soak") ?? 0);
    const code = await takeThrough(member, release, { input, soakMs }).catch((error: Error) => {
      member.session.screen.warn(error.message);
      return error instanceof CliError ? 2 : 1;
    });
    if (code !== 0) {
      showStop(session, fleet, index);
      return code;
    }
  }
  sayNext(session, { done: members.length }, `All of ${counted(members.length, "cluster")} done.`);
  return 0;
}

interface Judged extends MemberStanding {
  readonly changes: readonly string[];
  readonly identities: readonly string[];
}

/** Lets the API server and its webhooks try the change in a dry run. @throws CliError or KubeError */
async function judgeMember(member: FleetMember, release: Release): Promise<Judged> {
  const standing = await readStanding(member, release.name);
  const identities = await identitiesOf(standing);
  const changes = planMember(standing, release);
  if (changes.length === 0) return { ...standing, changes, identities };
  const other = fieldsThatDiffer(await storeRelease(standing, release, { dryRun: true }), release);
  if (other.length === 0) return { ...standing, changes, identities };
  throw new CliError(
    `the SidecarSet would be stored with another ${shortList(other)}: its definition or its webhooks are of another version; update them, or leave the context out`,
  );
}

const sameAs = (name: string) => `it is the same cluster as ${name}`;

function showPlan(session: Session, plan: readonly PlannedMember[], { name, digest }: Release): void {
  const shown = { sidecarSet: name, release: digest, clusters: plan };
  if (session.output !== "table") {
    session.printNext(shown);
    return;
  }
  const rows = plan.map(({ cluster, changes, problem }): readonly Part[] => {
    if (problem !== undefined) return [cluster, { text: "cannot get it", color: "red" }, problem];
    return changes.length === 0
      ? [cluster, { text: "has it", color: "green" }, ""]
      : [cluster, { text: "gets it", color: "yellow" }, shortList(changes)];
  });
  printTable(session.screen, ["CLUSTER", `RELEASE ${digest}`, "WHY"], rows);
}

function sayNext(session: Session, data: object, text: string): void {
  if (session.output === "table") session.screen.line(text);
  else session.printNext(data);
}

interface TakeOptions {
  readonly input: Input;
  /** soak time in milliseconds; 0 for the last cluster, because no other cluster waits for it */
  readonly soakMs: number;
}

/** @returns the exit code. @throws CliError or KubeError */
async function takeThrough(member: FleetMember, release: Release, { input, soakMs }: TakeOptions): Promise<number> {
  const standing = await readStanding(member, release.name);
  const changes = planMember(standing, release);
  if (changes.length > 0) {
    await storeRelease(standing, release);
    sayNext(member.session, { cluster: member.name, applied: changes }, `applied: ${shortList(changes)}`);
  }
  for (;;) {
    const code = await watch(input, member.session, () => lookAtMember(member, release, { soakMs, isSoaking: false }));
    if (code !== 0 || soakMs === 0) return code;
    const soaked = await watch(new Input([], {}), member.session, () =>
      lookAtMember(member, release, { soakMs, isSoaking: true }),
    );
    if (soaked !== NOT_READY_AGAIN) return soaked;
  }
}

const SOAK_LOOK_MS = 30_000;
/** A result that is no exit code: the rollout is watched again, with its timeout, and then soaks from the beginning. */
const NOT_READY_AGAIN = -1;

interface LookOptions {
  readonly soakMs: number;
  /** true: the wait ends with the soak time or a rollout that is no longer done; false: with a rollout that is done */
  readonly isSoaking: boolean;
}

/** The cluster's SidecarSet. @throws CliError when somebody changed it */
async function lookAtMember(member: FleetMember, release: Release, { soakMs, isSoaking }: LookOptions) {
  const { name, session } = member;
  const { sidecarSet, facts } = await readFacts(session, await member.connect(), release.name);
  const { stored = sidecarSet, record } = await readStanding(member, release.name);
  const putBack = whyPutBack(stored, release);
  if (putBack !== undefined) return { ...shownAs(name, putBack), code: NOT_DONE };
  const progress = standingOf(sidecarSet, facts);
  const why = explain("oneRound", progress.summary);
  const shown = (text: string, code: number | undefined, waitMs?: number) => ({
    ...shownAs(name, text),
    code,
    ...(waitMs === undefined ? {} : { waitMs }),
  });
  const code = watchCode({ sidecarSet, progress });
  const now = timeAt(await member.connect());
  const readyAt = record?.readyAt ?? now;
  const leftMs = soakMs - 1_000 * (secondsBetween(readyAt, now) ?? 0);
  // As with waves, the time starts again, but a finished soak is not repeated.
  const keptAt = leftMs <= 0 ? record?.readyAt : undefined;
  await keepReadyAt(member, stored, { before: record?.readyAt, after: code === 0 ? readyAt : keptAt });
  if (code === undefined && isSoaking) return shown(why, NOT_READY_AGAIN);
  if (code !== 0 || !isSoaking) return shown(why, code);
  if (leftMs <= 0) return shown("has soaked", 0);
  const until = addSeconds(readyAt, soakMs / 1_000);
  return shown(`Ready since ${readyAt}, soaks until ${until}`, undefined, Math.min(leftMs, SOAK_LOOK_MS));
}

/** The reason to write the release again; undefined: both are equal. @throws CliError when somebody changed it */
function whyPutBack(stored: SidecarSet, release: Release): string | undefined {
  const changed = fieldsThatDiffer(stored, release);
  if (changed.length === 0) return undefined;
  const givenUp = whyGivenUp(stored, podHash(release.sidecarSet));
  if (givenUp !== undefined) return `${givenUp} meanwhile, and put back: ${shortList(changed)}`;
  throw new CliError(`SidecarSet ${release.name} was changed meanwhile, by another client: ${shortList(changed)}`);
}

async function keepReadyAt(
  member: FleetMember,
  stored: SidecarSet,
  { before, after }: { readonly before: string | undefined; readonly after: string | undefined },
): Promise<void> {
  if (before !== after) await storeReadyAt(member, stored, after);
}

const shownAs = (cluster: string, why: string) => ({ why, data: { cluster, why }, show: () => undefined });

/** Prints the state of the stopped fleet, and the commands to continue and to go back. */
function showStop(session: Session, { members, release }: Fleet, index: number): void {
  const names = members.map(({ name }) => name);
  const [done, at, later] = [names.slice(0, index), names[index] ?? "", names.slice(index + 1)];
  const options = [...session.globalArguments, `--contexts ${names.join(",")}`].join(" ");
  const sentences = [
    `Stopped at ${at}.`,
    `${done.length} of ${counted(names.length, "cluster")} done${done.length > 0 ? `: ${done.join(", ")}` : ""}.`,
    ...(later.length > 0 ? [`Left as they are: ${later.join(", ")}.`] : []),
    "When that is put right, the same command goes on from there.",
    `Where all stand: sidecarset fleet status ${release.name} ${options}.`,
    `Back in all: sidecarset fleet undo ${release.name} ${options}`,
  ];
  if (session.output === "table") for (const sentence of sentences) session.screen.line(sentence);
  else session.printNext({ stoppedAt: at, done, left: later });
}

export async function statusOfFleet(session: Session, members: readonly FleetMember[], name: string): Promise<number> {
  const read = await readEachMember(members, (member) => readIdentified(member, name));
  const twins = twinsOf(members, read);
  const all = read.map((one, index) => {
    const cluster = members[index]?.name ?? "";
    if (one instanceof Error) return { cluster, problem: withoutSecrets(one.message) };
    const [row] = one.stored === undefined ? [] : setRows([one.stored]);
    const isCurrent = one.stored !== undefined && one.record?.to === releaseHash(revisionData(one.stored));
    return { cluster, row, record: isCurrent ? one.record : undefined, sameAs: twins[index] };
  });
  const nows = read.map((one) => (one instanceof Error ? "" : one.now));
  session.print(all, (screen) => {
    const rows = all.map(({ cluster, problem, row, record }, index): readonly Part[] => {
      if (problem !== undefined) return [cluster, "", "", "", { text: "not read", color: "red" }, "", problem];
      if (row === undefined) return [cluster, "", "", "", "", "", `no SidecarSet ${name}`];
      const [, ...cells] = cellsOf(row, nows[index] ?? "");
      return [cluster, record?.release ?? "not by fleet", ...cells];
    });
    printTable(screen, ["CLUSTER", "RELEASE", ...HEADINGS.slice(1)], rows, "STATE");
  });
  for (const [index, twin] of twins.entries())
    if (twin !== undefined) session.screen.warn(`${members[index]?.name}: ${sameAs(twin)}`);
  if (all.some(({ problem }) => problem !== undefined)) return NOT_READ;
  return all.some(({ row }) => row?.verdict !== undefined && natureOf(row.verdict).isTrouble) ? NEEDS_SOMEBODY : 0;
}

/** @returns the exit code: 1 if the command failed in a cluster */
export async function undoFleet(input: Input, session: Session, members: readonly FleetMember[]): Promise<number> {
  const name = input.argument(0);
  const twins = twinsOf(members, await readEachMember(members, (member) => readIdentified(member, name)));
  const twinOf = (member: FleetMember) => twins[members.indexOf(member)];
  const first = await forEachMember(members, async (member) =>
    twinOf(member) === undefined ? await undoMember(input, member, name) : undefined,
  );
  // A twin whose release is still there gets the undo too: it is another cluster, or a restored copy.
  const second = await forEachMember(members, async (member) => {
    const twin = twinOf(member);
    if (twin === undefined) return undefined;
    return input.isSet("dry-run") ? leftAlone(sameAs(twin)) : await undoMember(input, member, name, twin);
  });
  const done = members.flatMap((_, index) => first[index] ?? second[index] ?? []);
  for (const [index, one] of done.entries()) {
    const { name: cluster = "", session: own = session } = members[index] ?? {};
    if (one instanceof Error) sayFailed(own, cluster, withoutSecrets(one.message));
    else sayUndone(own, cluster, one);
  }
  // A twin is a second context of the same cluster, so its row repeats the earlier one.
  if (done.every((one, index) => twins[index] !== undefined || (!(one instanceof Error) && one.isMissing)))
    throw new CliError(`none of ${counted(done.length, "cluster")} has a SidecarSet ${name}: is that its name?`);
  const failed = done.filter((one) => one instanceof Error);
  if (failed.length > 0)
    session.screen.warn(`${failed.length} of ${counted(done.length, "cluster")} not undone${adviceAfter(failed)}.`);
  return failed.length > 0 ? 1 : 0;
}

/** A cluster without an earlier release has none the next time either, so the advice does not repeat it. */
function adviceAfter(failed: readonly Error[]): string {
  return failed.some((one) => !(one instanceof CliError)) ? "; repeat the command" : "";
}

const leftAlone = (why: string): UndoneMember => ({ text: `${why}: left as it is`, notes: [] });

function sayFailed(own: Session, cluster: string, problem: string): void {
  if (own.output !== "table") own.printNext({ cluster, problem });
  own.screen.warn(`not undone: ${problem}`);
}

function sayUndone(own: Session, cluster: string, one: UndoneMember): void {
  sayNext(own, { cluster, ...one }, one.text);
  for (const note of one.notes) own.screen.warn(note);
}

interface UndoneMember {
  readonly text: string;
  readonly notes: readonly string[];
  /** the cluster has no SidecarSet of that name */
  readonly isMissing?: true;
}

/** `twin`: another context of the same cluster. @throws CliError or KubeError */
async function undoMember(input: Input, member: FleetMember, name: string, twin?: string): Promise<UndoneMember> {
  const { stored, record } = await readStanding(member, name);
  if (stored === undefined) return { ...leftAlone(`no SidecarSet ${name}`), isMissing: true };
  if (record === undefined || record.to !== releaseHash(revisionData(stored)))
    return leftAlone(twin === undefined ? "does not have the release of fleet apply" : sameAs(twin));
  if (record.from === record.to) return leftAlone("fleet apply changed nothing that undo takes back");
  if (record.from === "")
    throw new CliError(
      `fleet apply created it, so there is nothing to go back to; take it away: kubectl --context ${member.name} delete sidecarset ${name} (running pods keep their sidecars)`,
    );
  const read: ReadSet = await readFacts(member.session, await member.connect(), name);
  const revision = recordedRevisions(read).find(({ data }) => releaseHash(data) === record.from);
  if (revision === undefined)
    throw new CliError(
      `the revision from before fleet apply is not kept any more; choose one: sidecarset --context ${member.name} history ${name}`,
    );
  const { text, spec, annotations = {}, notes = [] } = undoChange(read, revision, false);
  const dryRun = input.isSet("dry-run");
  await patchMember(member, read.sidecarSet, { annotations, spec }, { dryRun });
  return { text: `${text}${dryRun ? " (dry run, nothing is stored)" : ""}`, notes };
}
