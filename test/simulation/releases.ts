/**
 * The users of SidecarSets: they release images, roll back, and pause. They also delete a SidecarSet and create another
 * under its name.
 */
import { applyMergePatch } from "../../infra/local/patch/patch.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { type Injection, imageOf, type Release, type SetPlan, sidecarSetOf, timeOf } from "./objects.ts";

export interface ReleasesOptions {
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly sets: readonly SetPlan[];
  readonly first: Release;
  readonly reshapeRate: number;
  readonly nowMs: () => number;
  /** admits a write, and stores it later; absent: the write is stored at once */
  readonly admit?: ((next: SidecarSet, before: SidecarSet | undefined, store: () => void) => void) | undefined;
}

type Edit = Partial<Omit<Release, "strategy">> & { readonly strategy?: Release["strategy"] };

const WRITER = "user";

export class Releases {
  readonly #options: ReleasesOptions;
  readonly #current: Map<string, Release>;
  /** SidecarSet → shape of each version, from version 1 on */
  readonly #shapes: Map<string, number[]>;
  #made = 0;

  constructor(options: ReleasesOptions) {
    const { sets, first } = options;
    this.#options = options;
    this.#current = new Map(sets.map(({ name }) => [name, first]));
    this.#shapes = new Map(sets.map(({ name }) => [name, [first.shape]]));
  }

  /** Returns the release at the start. */
  get first(): Release {
    return this.#options.first;
  }

  get sets(): readonly SetPlan[] {
    return this.#options.sets;
  }

  of(set: string): Release {
    const release = this.#current.get(set);
    if (!release) throw new Error(`there is no release of ${set}`);
    return release;
  }

  stored(set: string): SidecarSet | undefined {
    return this.#options.server.peek<SidecarSet>(SIDECARSETS, { name: set });
  }

  /** Returns the sidecars that the webhook injects now. */
  get injections(): readonly Injection[] {
    const given = this.sets.filter(({ name }) => this.stored(name) && this.of(name).injection !== "paused");
    return given.map((set) => ({ ...set, ...buildOf(this.of(set.name)) }));
  }

  createAll(): void {
    for (const set of this.sets) if (!this.stored(set.name)) this.#write(set);
  }

  /** Changes the fields that users write. A deleted SidecarSet is later created again with them. */
  apply(set: string, edit: Edit): void {
    const before = this.of(set);
    this.#current.set(set, { ...before, ...edit, strategy: { ...before.strategy, ...edit.strategy } });
    const plan = this.sets.find(({ name }) => name === set);
    if (plan && this.stored(set)) this.#write(plan);
  }

  /** Releases a new image. `isAlike`: only the image is new. */
  releaseNext(set: string, isAlike = false): void {
    const shapes = this.#shapes.get(set) ?? [];
    const isReshaped = !isAlike && this.#options.chance.isLucky(this.#options.reshapeRate);
    const shape = isReshaped ? shapes.length : this.of(set).shape;
    shapes.push(shape);
    this.apply(set, { version: shapes.length, shape });
  }

  /** Releases an image that only new pods can have, because more than the image differs. */
  releaseReshaped(set: string): void {
    const shapes = this.#shapes.get(set) ?? [];
    shapes.push(shapes.length);
    this.apply(set, { version: shapes.length, shape: shapes.length - 1 });
  }

  /** Returns the image of the next release. */
  nextImage(set: string): string {
    return imageOf(set, (this.#shapes.get(set)?.length ?? 0) + 1);
  }

  /** Stores a merge patch, with the hashes that the webhook writes. */
  patch(set: string, body: unknown): void {
    const [plan, stored] = [this.sets.find(({ name }) => name === set), this.stored(set)];
    if (!(plan && stored)) return;
    const { metadata, spec } = applyMergePatch(stored, body) as SidecarSet;
    const shapes = this.#shapes.get(set) ?? [];
    const version = versionIn(spec);
    shapes[version - 1] ??= this.of(set).shape;
    const build = { version, shape: shapes[version - 1] ?? 0 };
    this.#current.set(set, { ...this.of(set), ...build, strategy: spec.updateStrategy ?? {} });
    const { annotations } = sidecarSetOf(plan, this.of(set)).metadata ?? {};
    const next = { metadata: { name: set, annotations: { ...metadata?.annotations, ...annotations } }, spec };
    this.#options.server.put(WRITER, SIDECARSETS, this.#versionOf({ ...stored, ...next } as SidecarSet, stored));
  }

  /** Rolls back to the previous release; returns false if there is none. */
  rollBack(set: string): boolean {
    const version = this.of(set).version - 1;
    if (version < 1) return false;
    this.apply(set, { version, shape: this.#shapes.get(set)?.[version - 1] ?? 0 });
    return true;
  }

  /** Rolls forward to the newest release that was ever made. */
  rollForth(set: string): void {
    const shapes = this.#shapes.get(set) ?? [];
    this.apply(set, { version: shapes.length, shape: shapes.at(-1) ?? 0 });
  }

  /** Ends pauses between waves, stops by checks, and restrictions of injection and replacement. */
  goOn(set: string): void {
    const { waves, checks, injection, replaced } = this.of(set);
    const { first } = this.#options;
    if (replaced !== first.replaced && first.replaced !== undefined) this.apply(set, { replaced: first.replaced });
    if (injection) this.apply(set, { injection: undefined });
    if (checks) this.apply(set, { checks: checks.map((check) => ({ ...check, max: check.max + 0.5 })) });
    if (waves?.some(({ paused }) => paused)) this.apply(set, { waves: waves.map(({ paused: _, ...wave }) => wave) });
  }

  remove(set: string): boolean {
    const stored = this.stored(set);
    if (stored) this.#options.server.remove(WRITER, SIDECARSETS, stored);
    return stored !== undefined;
  }

  #write(set: SetPlan): void {
    const next = sidecarSetOf(set, this.of(set.name));
    const { admit, server } = this.#options;
    const before = this.stored(set.name);
    const store = () => server.put(WRITER, SIDECARSETS, this.#versionOf(next, this.stored(set.name)));
    if (admit) admit(this.#versionOf(next, before), before, store);
    else store();
  }

  /** Counts the generation as an API server does. */
  #versionOf(next: SidecarSet, stored: SidecarSet | undefined): SidecarSet {
    const { generation = 0, ...kept } = stored?.metadata ?? this.#newMetadata(next.metadata?.name ?? "");
    const isSame = stored && JSON.stringify(stored.spec) === JSON.stringify(next.spec);
    const managed = isSame ? {} : this.#managedFields();
    const metadata = { ...kept, ...next.metadata, ...managed, generation: isSame ? generation : generation + 1 };
    const status = stored?.status ? { status: stored.status } : {};
    return { ...next, metadata, ...status } as SidecarSet;
  }

  /**
   * Returns field managers with the time of the last write of the spec. Decisions about replacements read this time.
   */
  #managedFields() {
    const { nowMs, first } = this.#options;
    if (first.replaced === undefined) return {};
    return { managedFields: [{ manager: WRITER, time: timeOf(nowMs()), fieldsV1: { "f:spec": {} } }] };
  }

  #newMetadata(set: string): NonNullable<SidecarSet["metadata"]> {
    return { uid: `${set}-${++this.#made}`, creationTimestamp: "2026-01-01T00:00:00Z" };
  }
}

function buildOf({ version, shape, injection }: Release) {
  return injection === "pinned" ? { version: 1, shape: 0 } : { version, shape };
}

function versionIn({ containers = [] }: SidecarSet["spec"]): number {
  return Number(containers[0]?.image?.split(":").at(-1));
}
