/**
 * Clusters in this process with a SidecarSet and two pods each. A pass follows each change. The fleet commands run on
 * these clusters.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Input } from "../../functions/cli/command.ts";
import { applyFleet, statusOfFleet, undoFleet } from "../../functions/cli/commands/fleet.ts";
import { type FleetMember, releaseOfFile } from "../../functions/cli/input/fleet-members.ts";
import { Session } from "../../functions/cli/session.ts";
import { storedSidecarSet } from "../../functions/library/pass-input.ts";
import { createScreen } from "../../functions/terminal/screen.ts";
import type { LocalApi, LocalClusterOptions } from "../../infra/local/cluster.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  FLEET_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  SIDECARSET_V1BETA1,
} from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import {
  type Cluster,
  type CreateOptions,
  type ObjectKey,
  type Patch,
  type PatchOptions,
  PODS,
  type Resource,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import {
  allReady,
  furnish,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  versionsOf,
} from "../controller/fixture.ts";
import { startInProcessCluster } from "../support/in-process-cluster.ts";
import { injectedBy, newPod } from "../support/objects.ts";
import type { Outcome } from "./run-cli.ts";

export const AGENT = "agent";

/** Returns the SidecarSet as the webhook stores it. */
export function agentOf(version: number, updateStrategy: UpdateStrategy = {}): SidecarSet {
  return storedSidecarSet({
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: { name: AGENT },
    spec: {
      selector: { matchLabels: { app: AGENT } },
      containers: [{ name: "proxy", image: `registry.example/proxy:${version}` }],
      updateStrategy: { type: "RollingUpdate", maxUnavailable: 2, ...updateStrategy },
    },
  } as SidecarSet);
}

export function agentPod(name: string): Pod {
  const { metadata } = agentOf(1);
  const hash = metadata?.annotations?.[HASH_ANNOTATION] ?? "";
  const withoutImage = metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION] ?? "";
  const annotations = injectedBy(AGENT, { hash, withoutImage, sidecars: ["proxy"] });
  const containers = [
    { name: "main", image: "registry.example/main:1" },
    { name: "proxy", image: "registry.example/proxy:1" },
  ];
  return newPod({ name, namespace: NAMESPACE, labels: { app: AGENT }, annotations }, { containers });
}

/**
 * A fault of a cluster. "refuses": every write; "refuses later": a write after it was stored; "silent": every call;
 * "silent later": every call after the first stored write; "slow": each answer takes 6 seconds.
 */
export type Trouble = "refuses" | "refuses later" | "silent" | "silent later" | "never ready" | "slow";

export interface StandIn {
  readonly name: string;
  /** the tests' client */
  readonly cluster: Cluster;
  trouble: Trouble | undefined;
  readonly versions: () => Promise<readonly string[]>;
  readonly stored: () => Promise<SidecarSet>;
  /** returns the writes by any client that changed the release */
  readonly releases: () => readonly string[];
  readonly close: () => Promise<void>;
}

/** Ends the command line as SIGKILL does: at the call with this number, `before` or `after` the server has seen it. */
export class Killer {
  calls = 0;
  writes = 0;
  readonly #at: { readonly call?: number; readonly write?: number; readonly when: "before" | "after" } | undefined;
  readonly killed: Promise<"killed">;
  #kill: (word: "killed") => void = () => undefined;

  constructor(at?: { readonly call?: number; readonly write?: number; readonly when: "before" | "after" }) {
    this.#at = at;
    this.killed = new Promise((resolve) => {
      this.#kill = resolve;
    });
  }

  /** Never resolves if the kill is due. */
  async around<T>(isStored: boolean, call: () => Promise<T>): Promise<T> {
    this.calls++;
    if (isStored) this.writes++;
    const at = this.#at;
    const isTime = at !== undefined && (at.call === this.calls || (isStored && at.write === this.writes));
    if (isTime && at.when === "before") return this.#never();
    const answer = await call();
    return isTime ? this.#never() : answer;
  }

  #never<T>(): Promise<T> {
    this.#kill("killed");
    return new Promise<T>(() => undefined);
  }
}

const refused = () =>
  new KubeError('sidecarsets.apps.kruise.io "agent" is forbidden: User "me" cannot patch resource "sidecarsets"', {
    code: 403,
    reason: "Forbidden",
  });

async function silence(): Promise<never> {
  await sleep(10_000);
  throw new KubeError("https://in-process.invalid did not answer within 10000 ms", { code: 0, reason: "Timeout" });
}

export async function startStandIn(name: string, trouble?: Trouble): Promise<StandIn> {
  const options = { startDelayMs: 5, readyDelayMs: 5, nodes: 1 };
  const imageBehaviour: NonNullable<LocalClusterOptions["imageBehaviour"]> = (image) =>
    image.includes("main:2") || (trouble === "never ready" && image.includes("proxy:2")) ? "never-ready" : "runs";
  const { cluster, history, close } = await startInProcessCluster({ ...options, imageBehaviour });
  await furnish(cluster);
  await cluster.create<SidecarSet>(SIDECARSETS, agentOf(1));
  for (const index of [0, 1]) await cluster.create<Pod>(PODS, agentPod(`${AGENT}-${index}`));
  await allReady(cluster, AGENT);
  const standIn: StandIn = {
    name,
    cluster,
    trouble,
    versions: async () => versionsOf(await readPods(cluster, AGENT)),
    stored: () => readSet(cluster, AGENT),
    releases: () => releasesIn(history()),
    close,
  };
  await passOver(cluster);
  return standIn;
}

function releasesIn(history: ReturnType<LocalApi["history"]>): readonly string[] {
  const images = history.flatMap(({ resource, object }) =>
    resource === "sidecarsets" ? [(object as unknown as SidecarSet).spec.containers?.[0]?.image ?? ""] : [],
  );
  return images.filter((image, index) => image !== images[index - 1]);
}

export async function passOver(cluster: Cluster): Promise<void> {
  await runPass(cluster, {
    deadlineMs: 600_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    follow: true,
    settings: DEFAULT_ROLLOUT_SETTINGS,
  });
}

const isRefusing = (trouble: Trouble | undefined, isWrite: boolean, isStored: boolean) =>
  (trouble === "refuses" && isWrite) || (trouble === "refuses later" && isStored);

/** Returns the cluster as the command line sees it. A pass follows each stored change of the SidecarSet's spec. */
function seenBy(standIn: StandIn, killer: Killer): Cluster {
  const { cluster } = standIn;
  const call = async <T>(isWrite: boolean, isStored: boolean, work: () => Promise<T>): Promise<T> => {
    const { trouble } = standIn;
    if (trouble === "silent later" && isStored) standIn.trouble = "silent";
    if (standIn.trouble === "silent") return silence();
    if (trouble === "slow") await sleep(6_000);
    if (isRefusing(trouble, isWrite, isStored)) throw refused();
    return killer.around(isStored, work);
  };
  // The mutating webhook adds hashes, and a cluster in this process has no webhook.
  const followed = async (stored: SidecarSet): Promise<SidecarSet> => {
    const { annotations } = storedSidecarSet(stored).metadata ?? {};
    const body = { metadata: { annotations } };
    const hashed = await cluster.patch<SidecarSet>(SIDECARSETS, { name: AGENT }, { type: "merge", body });
    void passOver(cluster);
    return hashed;
  };
  return {
    ...cluster,
    get: (...given) => call(false, false, () => cluster.get(...given)),
    list: (...given) => call(false, false, () => cluster.list(...given)),
    create: async <T>(resource: Resource, object: T, options?: CreateOptions) => {
      const isStored = !options?.dryRun;
      const create = () => cluster.create<SidecarSet>(resource, object as SidecarSet, options);
      return (await call(true, isStored, async () => (isStored ? followed(await create()) : create()))) as T;
    },
    patch: async <T>(resource: Resource, key: ObjectKey, patch: Patch, options?: PatchOptions) => {
      const isStored = !options?.dryRun;
      const isSpec = isStored && patch.type === "merge" && "spec" in (patch.body as object);
      const write = () => cluster.patch<SidecarSet>(resource, key, patch, options);
      return (await call(true, isStored, async () => (isSpec ? followed(await write()) : write()))) as T;
    },
  };
}

interface FleetRun {
  readonly standIns: readonly StandIn[];
  readonly killer?: Killer;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly output?: string;
}

/** @returns undefined if the command was killed */
async function run(
  { standIns, killer = new Killer(), output }: FleetRun,
  command: (session: Session, members: readonly FleetMember[]) => Promise<number>,
): Promise<Outcome & { readonly isKilled: boolean }> {
  const written: { readonly out: string[]; readonly err: string[] } = { out: [], err: [] };
  const screen = createScreen({
    out: { write: (text) => written.out.push(text) },
    err: { write: (text) => written.err.push(text) },
    mayColor: false,
  });
  const session = new Session(screen, { output }, ["table", "json", "yaml"]);
  const members = standIns.map((one) => {
    const seen = seenBy(one, killer);
    return { name: one.name, session: session.ofContext(one.name, "10s"), connect: async () => seen };
  });
  const ended = await Promise.race([command(session, members), killer.killed]);
  const isKilled = ended === "killed";
  return { code: isKilled ? -1 : ended, stdout: written.out.join(""), stderr: written.err.join(""), isKilled };
}

export const apply = (given: FleetRun, version: number, strategy?: UpdateStrategy) =>
  applySet(given, agentOf(version, strategy));

export const applySet = (given: FleetRun, sidecarSet: SidecarSet) =>
  run(given, (session, members) =>
    applyFleet(new Input([], given.options ?? {}), session, { members, release: releaseOfFile(sidecarSet) }),
  );

export const undo = (given: FleetRun, name = AGENT) =>
  run(given, (session, members) => undoFleet(new Input([name], given.options ?? {}), session, members));

export const status = (given: FleetRun) => run(given, (session, members) => statusOfFleet(session, members, AGENT));

export async function recordOf(standIn: StandIn): Promise<Readonly<Record<string, string>>> {
  return JSON.parse((await standIn.stored()).metadata?.annotations?.[FLEET_ANNOTATION] ?? "{}");
}
