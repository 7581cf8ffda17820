/** Carries out the commands that the product prints, by the functions of the command line, and judges what they promised. */

import { type Command, Input } from "../../functions/cli/command.ts";
import { RESUME } from "../../functions/cli/commands/pause.ts";
import { PROMOTE } from "../../functions/cli/commands/promote.ts";
import type { Session } from "../../functions/cli/session.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { checkBlocked } from "../../shared/core/inspect/check/blocked.ts";
import { explainSidecarSet } from "../../shared/core/inspect/explain/explain.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { judged } from "../support/hold-places.ts";
import { seededChance } from "./chance.ts";
import type { WorldKind } from "./kinds.ts";
import { hashOfPod, KRUISE_NAMESPACE } from "./objects.ts";
import { budgetOf, reaches, selects } from "./permission.ts";
import { readerOf, readNow } from "./read-now.ts";
import { isReshaped, placeOf } from "./replacements.ts";
import { unsettled, windowOf, writtenByPass } from "./settle.ts";
import type { World } from "./world.ts";

/** One world of so many has advice carried out, if nothing but its pods can hold its rollouts. */
const EVERY_WORLD = 3;
const KINDS: ReadonlySet<WorldKind | undefined> = new Set([undefined, "namespaces", "order", "busy", "hands"]);
const STREAM = 53;
/** More passes than a rollout needs: one learns of the change, one of its end. */
const MORE_PASSES = 4;
/** These fields of a strategy let every pod through. */
const OPEN: UpdateStrategy = { type: "RollingUpdate", paused: false, partition: 0, selector: {} };

interface Situation {
  /** brings a world at rest there, and a pass has seen it */
  readonly given: (world: World, set: string) => void;
  readonly command: Command;
  /** in what the product prints */
  readonly words: RegExp;
}

const SITUATIONS: Readonly<Record<string, Situation>> = {
  resume: {
    given: (world, set) => release(world, set, { paused: true }),
    command: RESUME,
    words: /sidecarset resume (\S+)/,
  },
  promote: {
    given: (world, set) => release(world, set, { partition: "100%" }),
    command: PROMOTE,
    words: /sidecarset promote (\S+)/,
  },
};

/** After everything is settled: a situation, the advice, and as many passes as a rollout takes. */
export async function judgeAdvice(world: World): Promise<void> {
  const { scenario, users, server } = world;
  const set = scenario.sets[0]?.name ?? "";
  const stored = users.releases.stored(set);
  if (!(isMeant(world) && stored)) return;
  // The pods that are updated in place once nothing of the strategy is in the way.
  const { now } = world.witness.namespaces;
  const pods = server.all<Pod>(PODS).filter((pod) => selects(stored, pod, now) && !isReshaped(pod, stored)).length;
  if (pods === 0 || budgetOf(stored, pods) === 0) return;
  const name = seededChance(scenario.seed, STREAM).pick(Object.keys(SITUATIONS));
  const situation = SITUATIONS[name];
  if (!situation) return;
  situation.given(world, set);
  for (let pass = 0; pass < 2; pass++) await writtenByPass(world);
  const printed = await advice(world, set);
  const [command, target = ""] = situation.words.exec(printed) ?? [];
  if (command === undefined) return void world.violated(`${set}: no ${name} is advised: ${printed}`);
  world.looked(`advice: ${name}`);
  await situation.command.run(new Input([target], {}), sessionOf(world));
  await judgePromise(world, command, Math.ceil(pods / windowOf(world, set, pods)) + MORE_PASSES);
}

function isMeant({ scenario, violations }: World): boolean {
  const { seed, kind, tenantPods = 0 } = scenario;
  return seed % EVERY_WORLD === 0 && KINDS.has(kind) && tenantPods === 0 && violations.length === 0;
}

async function judgePromise(world: World, command: string, most: number): Promise<void> {
  let left: readonly string[] = [""];
  for (let pass = 0; pass < most && left.length > 0; pass++) {
    await writtenByPass(world);
    left = [...unsettled(world), ...oldPods(world)];
  }
  for (const problem of left) world.violated(`${most} passes after "${command}": ${problem}`);
}

/** Neither the partition nor a pause keeps a pod any more. */
function oldPods({ server, scenario, witness }: World): readonly string[] {
  const [plan] = scenario.sets;
  const set = server.peek<SidecarSet>(SIDECARSETS, { name: plan?.name ?? "" });
  if (!set) return [];
  const { now } = witness.namespaces;
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION];
  const isOld = (pod: Pod) =>
    selects(set, pod, now) && reaches(set, pod, now) && hashOfPod(pod, plan?.name ?? "") !== hash;
  return server
    .all<Pod>(PODS)
    .filter(isOld)
    .map((pod) => `${placeOf(pod)} is not updated`);
}

function release({ users }: World, set: string, strategy: UpdateStrategy): void {
  users.releases.apply(set, { strategy: { ...OPEN, ...strategy }, tier: undefined });
  users.releases.releaseNext(set, true);
}

/** Everything that `explain` and `check` print of it. */
async function advice(world: World, name: string): Promise<string> {
  const read = await readNow(world.reader, name);
  if (!read) return "";
  const { decision, facts } = judged(read, read.sidecarSets);
  const steps = explainSidecarSet(read.observation.sidecarSet, facts);
  const findings = checkBlocked(read.observation.sidecarSet, decision);
  return [...steps, ...findings].map(({ hint }) => hint ?? "").join("\n");
}

/** A session whose cluster is the store; what webhooks do about a change, users of a world do. */
function sessionOf(world: World): Session {
  const { users, server, reader } = world;
  const patch = (async (_resource, { name }, change) => {
    const { updateStrategy } = (change as unknown as { readonly body: { readonly spec: Changed } }).body.spec;
    if (updateStrategy) users.releases.apply(name, { strategy: updateStrategy });
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

interface Changed {
  readonly updateStrategy?: UpdateStrategy;
}
