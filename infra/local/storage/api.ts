/** The state that every verb works on, and the contents of a call. */
import type { Kind } from "../kinds/kind.ts";
import type { Registry } from "../kinds/registry.ts";
import type { Key } from "./json.ts";
import type { History, Store } from "./store.ts";

export interface Api {
  readonly store: Store;
  readonly registry: Registry;
  readonly history: History;
  readonly clock: Clock;
  /** returns a number in [0, 1) */
  readonly random: () => number;
}

export interface User {
  readonly username: string;
  readonly groups: readonly string[];
}

export interface Caller {
  readonly userAgent: string;
  readonly user: User;
}

/** A request about one kind, from any source. */
export interface Call extends Key {
  readonly kind: Kind;
  /** name of the subresource; "" for the object itself */
  readonly subresource: string;
  readonly caller: Caller;
  readonly dryRun: boolean;
  readonly fieldValidation: "Ignore" | "Warn" | "Strict";
  /** Texts for Warning headers. */
  readonly warnings: string[];
}

/** A component of the control plane as caller. */
export function component(name: string): Caller {
  return {
    userAgent: name,
    user: {
      username: `system:serviceaccount:kube-system:${name}`,
      groups: ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
    },
  };
}

/** A call from inside the cluster. */
export function internalCall(caller: Caller, kind: Kind, key: Key, subresource = ""): Call {
  return { ...key, kind, subresource, caller, dryRun: false, fieldValidation: "Ignore", warnings: [] };
}

// Time for the embedded cluster. One object knows every timer, so that closing leaves none behind.

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs once after `delayMs`. The returned function cancels it. */
  after(delayMs: number, run: () => void): () => void;
  /** Cancels everything that still waits; later calls of `after` do nothing. */
  close(): void;
}

export function systemClock(): Clock {
  const waiting = new Set<NodeJS.Timeout>();
  let isClosed = false;
  return {
    now: () => Date.now(),
    after(delayMs, run) {
      if (isClosed) return () => undefined;
      const timer = setTimeout(() => {
        waiting.delete(timer);
        run();
      }, delayMs);
      waiting.add(timer);
      return () => {
        clearTimeout(timer);
        waiting.delete(timer);
      };
    },
    close() {
      isClosed = true;
      for (const timer of waiting) clearTimeout(timer);
      waiting.clear();
    },
  };
}
