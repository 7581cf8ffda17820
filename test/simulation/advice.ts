/**
 * Carries out the commands that the product prints, through the functions of the command line, and judges their
 * promises.
 */

import { type Command, Input } from "../../functions/cli/command.ts";
import { CANARY } from "../../functions/cli/commands/set-image.ts";
import { PROMOTE, RESUME } from "../../functions/cli/commands/set-strategy.ts";
import { ABORT, UNDO } from "../../functions/cli/commands/undo.ts";
import type { Session } from "../../functions/cli/session.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { checkBlocked } from "../../shared/core/inspect/check/passes.ts";
import { explainPod, explainSidecarSet } from "../../shared/core/inspect/explain/explain.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { judged } from "../support/hold-places.ts";
import { seededChance } from "./chance.ts";
import type { WorldKind } from "./kinds.ts";
import { hashOfPod, KRUISE_NAMESPACE, sidecarOf } from "./objects.ts";
import { budgetOf, reaches, selects } from "./permission.ts";
import { readerOf, readNow } from "./read-now.ts";
import { isReshaped, placeOf } from "./replacements.ts";
import { unsettled, windowOf, writtenByPass } from "./settle.ts";
import type { World } from "./world.ts";

/**
 * Advice is carried out only where nothing but the pods can hold the rollouts of a world: no wave waits, and no pass
 * undoes a release.
 */
const KINDS: ReadonlySet<WorldKind | undefined> = new Set([undefined, "namespaces", "order", "busy", "hands"]);
const STREAM = 53;
/** The passes that are added to a rollout: one for the change, one for its end. */
const MORE_PASSES = 4;
/** A round of restarts names three workloads. */
const MOST_ROUNDS = 10;
/** A strategy with these fields lets every pod through. */
const OPEN: UpdateStrategy = { type: "RollingUpdate", paused: false, partition: 0, selector: {} };

/** Judges one piece of advice about a SidecarSet. `pods`: the number of pods that can be updated in place. */
type Judge = (world: World, set: string, pods: number) => Promise<void>;

/** Groups of judges. A world uses the group at the remainder of its seed. */
const JUDGES: readonly Readonly<Record<string, Judge>>[] = [
  {
    resume: (world, set, pods) => {
      release(world, set, { paused: true });
      return judgeCommand(world, { set, pods, command: RESUME });
    },
    promote: (world, set, pods) => {
      release(world, set, { partition: "100%" });
      return judgeCommand(world, { set, pods, command: PROMOTE });
    },
  },
  { undo: judgeUndo, abort: judgeAbort, restart: judgeRestarts },
  {},
];

/**
 * Brings about a situation after the world has settled, follows the advice, and runs as many passes as a rollout takes.
 */
export async function judgeAdvice(world: World): Promise<void> {
  const { scenario, users, server } = world;
  const set = scenario.sets[0]?.name ?? "";
  const stored = users.releases.stored(set);
  if (!(isMeant(world) && stored)) return;
  // The pods that are updated in place once the strategy allows all of them.
  const { now } = world.witness.namespaces;
  const pods = server.all<Pod>(PODS).filter((pod) => selects(stored, pod, now) && !isReshaped(pod, stored)).length;
  if (pods === 0 || budgetOf(stored, pods) === 0) return;
  const judges = Object.values(JUDGES[scenario.seed % JUDGES.length] ?? {});
  if (judges.length > 0) await seededChance(scenario.seed, STREAM).pick(judges)(world, set, pods);
}

function isMeant({ scenario, violations }: World): boolean {
  const { kind, tenantPods = 0, release: { waves } = {}, sets } = scenario;
  const isHeld = waves !== undefined || sets.some(({ isAmongTenants }) => isAmongTenants);
  return KINDS.has(kind) && tenantPods === 0 && !isHeld && violations.length === 0;
}

interface Advised {
  readonly set: string;
  readonly pods: number;
  readonly command: Command;
  /** the hash that the SidecarSet must have after the command; default: its hash before the command */
  readonly hash?: string | undefined;
  /** the text that contains the command; default: everything that `explain` and `check` print */
  readonly printed?: string;
}

/** Runs two passes, finds the command in the printed text, carries it out, and judges the rollout that follows. */
async function judgeCommand(world: World, { set, pods, command: { name, run }, ...given }: Advised): Promise<void> {
  for (let pass = 0; pass < 2; pass++) await writtenByPass(world);
  const printed = given.printed ?? (await advice(world, set));
  const [command, target = ""] = new RegExp(`sidecarset ${name} ([^\\s,;]+)`).exec(printed) ?? [];
  if (command === undefined) return void world.violated(`${set}: no ${name} is advised: ${printed}`);
  world.looked(`advice: ${name}`);
  const { hash = hashNow(world, set) } = given;
  await run(new Input([target], {}), sessionOf(world));
  if (hashNow(world, set) !== hash)
    return world.violated(`"${command}" makes ${set} ${hashNow(world, set)}, not ${hash}`);
  await judgePromise(world, `"${command}"`, mostPasses(world, set, pods));
}

/** Judges `undo` after a release whose image no node can pull. */
async function judgeUndo(world: World, set: string, pods: number): Promise<void> {
  const { releases } = world.users;
  if (!(await bringToAll(world, set, pods))) return;
  const hash = hashNow(world, set);
  world.kubelet.refuseImage(releases.nextImage(set));
  release(world, set, {});
  await judgeCommand(world, { set, pods, command: UNDO, hash });
}

/** Judges `abort`, which is advised when a second canary is refused. */
async function judgeAbort(world: World, set: string, pods: number): Promise<void> {
  if (!(await bringToAll(world, set, pods))) return;
  const hash = hashNow(world, set);
  const canary = async () => {
    const image = `${sidecarOf(set)}=${world.users.releases.nextImage(set)}`;
    await CANARY.run(new Input([set, image], { share: "50%" }), sessionOf(world));
  };
  await canary();
  for (let pass = 0; pass < 2; pass++) await writtenByPass(world);
  const printed = await canary().then(
    () => "",
    (error: Error) => error.message,
  );
  await judgeCommand(world, { set, pods, command: ABORT, hash, printed });
  const { injectionStrategy } = world.users.releases.stored(set)?.spec ?? {};
  if (injectionStrategy?.revision)
    world.violated(`${set}: abort leaves new pods at ${JSON.stringify(injectionStrategy)}`);
}

/** Judges the commands that recreate pods after a release that only new pods can follow. Nobody can restart the ReplicaSet of one pod. */
async function judgeRestarts(world: World, set: string): Promise<void> {
  const { users, server, scenario } = world;
  const { namespace = "" } = server.all<Pod>(PODS)[0]?.metadata ?? {};
  users.createPod(namespace, `cast-${scenario.seed}`);
  await writtenByPass(world);
  release(world, set, {}, true);
  for (let pass = 0; pass < 2; pass++) await writtenByPass(world);
  let printed = await advice(world, set);
  if (commandsIn(printed).length === 0) return void world.violated(`${set}: no restart is advised: ${printed}`);
  for (let round = 0; round < MOST_ROUNDS && commandsIn(printed).length > 0; round++) {
    for (const command of commandsIn(printed)) renew(world, command);
    for (let pass = 0; pass < 2; pass++) await writtenByPass(world);
    printed = await advice(world, set);
  }
  await judgePromise(world, "restarts", MORE_PASSES, (pod) => !isOfJob(pod));
}

const RENEWAL = /kubectl -n (?<namespace>\S+) (?<verb>rollout restart|delete pod) (?<named>[\w. /-]+)/g;

/** Returns every different command that recreates pods. */
function commandsIn(printed: string): readonly RegExpExecArray[] {
  return [...new Map([...printed.matchAll(RENEWAL)].map((found) => [found[0], found])).values()];
}

/** Deletes the pods that the command is about. */
function renew(world: World, { 0: command, groups }: RegExpExecArray): void {
  const { namespace, verb, named = "" } = groups ?? {};
  const names = named.trim().split(" ");
  const isDeleted = verb === "delete pod";
  const isNamed = (pod: Pod) => names.includes((isDeleted ? pod.metadata?.name : workloadOf(pod)) ?? "");
  const ofNamespace = world.server.all<Pod>(PODS).filter(({ metadata }) => metadata?.namespace === namespace);
  const pods = ofNamespace.filter(isNamed);
  if (pods.length === 0) world.violated(`"${command}" is advised, and there is no such pod`);
  for (const pod of pods) world.users.renew(pod);
  world.looked(`advice: ${isDeleted ? "recreate" : "restart"}`);
}

const isOfJob = ({ metadata }: Pod) => metadata?.ownerReferences?.some(({ kind }) => kind === "Job") === true;

/** Returns the workload's name as kubectl writes it. */
function workloadOf({ metadata }: Pod): string {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return owner ? `${owner.kind.toLowerCase()}/${owner.name}` : "";
}

/** Makes a release and waits for it. False: some pod cannot be updated in place. */
async function bringToAll(world: World, set: string, pods: number): Promise<boolean> {
  release(world, set, {});
  await judgePromise(world, "a release", mostPasses(world, set, pods));
  return world.violations.length === 0 && oldPods(world, () => true).length === 0;
}

function mostPasses(world: World, set: string, pods: number): number {
  return Math.ceil(pods / windowOf(world, set, pods)) + MORE_PASSES;
}

function hashNow({ users }: World, set: string): string | undefined {
  return users.releases.stored(set)?.metadata?.annotations?.[HASH_ANNOTATION];
}

type Follows = (pod: Pod) => boolean;

/** `follows`: true for a pod that must be updated; default: a pod that can be updated in place. */
async function judgePromise(world: World, what: string, most: number, follows?: Follows): Promise<void> {
  let left: readonly string[] = [""];
  for (let pass = 0; pass < most && left.length > 0; pass++) {
    await writtenByPass(world);
    left = [...unsettled(world), ...oldPods(world, follows)];
  }
  for (const problem of left) world.violated(`${most} passes after ${what}: ${problem}`);
}

/** Returns the old pods that neither the partition nor a pause holds back. */
function oldPods({ server, scenario, witness }: World, follows?: Follows): readonly string[] {
  const [plan] = scenario.sets;
  const set = server.peek<SidecarSet>(SIDECARSETS, { name: plan?.name ?? "" });
  if (!set) return [];
  const { now } = witness.namespaces;
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION];
  const isToFollow = follows ?? ((pod: Pod) => reaches(set, pod, now));
  const isOld = (pod: Pod) => selects(set, pod, now) && isToFollow(pod) && hashOfPod(pod, plan?.name ?? "") !== hash;
  return server
    .all<Pod>(PODS)
    .filter(isOld)
    .map((pod) => `${placeOf(pod)} is not updated`);
}

/** `isReshaped`: only new pods can have this release. */
function release({ users }: World, set: string, strategy: UpdateStrategy, isReshaped = false): void {
  users.releases.apply(set, { strategy: { ...OPEN, ...strategy }, tier: undefined });
  if (isReshaped) users.releases.releaseReshaped(set);
  else users.releases.releaseNext(set, true);
}

/** Returns all hints of `explain` and `check` about a SidecarSet and its pods. */
async function advice(world: World, name: string): Promise<string> {
  const read = await readNow(world.reader, name);
  if (!read) return "";
  const { decision, facts } = judged(read, read.sidecarSets);
  const steps = explainSidecarSet(read.observation.sidecarSet, facts);
  const findings = checkBlocked(read.observation.sidecarSet, decision);
  const ofPods = read.observation.pods.flatMap((pod) => explainPod(pod, read.observation.sidecarSet, facts));
  return [...steps, ...findings, ...ofPods].map(({ hint }) => hint ?? "").join("\n");
}

/** Returns a session whose cluster is the store. The world's users make the changes that webhooks would make. */
function sessionOf(world: World): Session {
  const { users, server, reader } = world;
  const patch = (async (_resource, { name }, change) => {
    users.releases.patch(name, (change as { readonly body?: unknown }).body);
    return users.releases.stored(name);
  }) as Cluster["patch"];
  const session = {
    kruiseNamespace: KRUISE_NAMESPACE,
    screen: { warn: () => undefined },
    cluster: async () => ({ ...readerOf(server), patch }),
    passSettings: async () => reader.settings,
    print: () => undefined,
  };
  return session as unknown as Session;
}
