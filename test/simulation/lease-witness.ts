/**
 * Judges writes to the Lease. A pass may not take it from a pass that renews it. A pass that writes pods must renew it.
 */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { Write } from "./api-server.ts";

/** Milliseconds for which a Lease is valid. */
const HOLDS_MS = 30_000;
/** A pass without obstacles renews the Lease at least this often, in milliseconds. */
const RENEWED_MS = 12_000;
/** A larger error means that the clock was set. */
const SKEW_MS = 30_000;

interface Held {
  readonly holder: string;
  readonly writer: string;
  readonly atMs: number;
  /** the time in the Lease; the write may have arrived later */
  readonly renewedMs: number;
  /** true if the writer's clock was right */
  readonly isTimely: boolean;
}

export class LeaseWitness {
  readonly #nowMs: () => number;
  #last: Held | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Judges a write to the Lease. Returns a sentence if it is wrong. */
  problemOf({ object, userAgent, isRemoved }: Write): string | undefined {
    const last = this.#last;
    const now = isRemoved ? undefined : this.#held(object as unknown as KubernetesObject, userAgent);
    this.#last = now;
    if (!last || !now || last.holder === "" || now.holder === "" || last.holder === now.holder) return undefined;
    // The age on the clock of the pass that takes the Lease. The time in the Lease is a little later than the pass'
    // read.
    const ageMs = Math.abs(now.renewedMs - last.renewedMs);
    const isKept = last.isTimely && now.isTimely && ageMs < HOLDS_MS - 1_000;
    return isKept ? `takes the Lease that ${last.writer} renewed ${Math.round(ageMs)} ms ago` : undefined;
  }

  /** Judges a write to a pod by a pass without obstacles. */
  neglectOf(writer: string): string | undefined {
    if (this.#last?.writer !== writer) return undefined;
    const ageMs = this.#nowMs() - this.#last.atMs;
    return ageMs > RENEWED_MS ? `was written, and the Lease not renewed for ${Math.round(ageMs)} ms` : undefined;
  }

  #held(lease: KubernetesObject, writer: string): Held {
    const { spec } = lease as { readonly spec?: { readonly holderIdentity?: string; readonly renewTime?: string } };
    const atMs = this.#nowMs();
    const renewedMs = Date.parse(spec?.renewTime ?? "");
    const isTimely = Math.abs(renewedMs - atMs) < SKEW_MS;
    return { holder: spec?.holderIdentity ?? "", writer, atMs, renewedMs, isTimely };
  }
}
