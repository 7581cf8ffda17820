/** Namespaces with slow writes to pods or budgets, for example because of a slow webhook: other namespaces go first. */
import type { Reserved } from "../../core/rollout/select/reserved.ts";
import type { Clock } from "../loop/clock.ts";

/** A write that takes longer makes its namespace slow. */
const SLOW_MS = 5_000;
/** Limit of concurrent writes to one namespace while other namespaces have some to begin. */
const MOST_AT_ONCE = 16;

const slowOf = new WeakMap<object, Set<string>>();

function slowNamespaces(rollout: object): Set<string> {
  const found = slowOf.get(rollout) ?? new Set();
  slowOf.set(rollout, found);
  return found;
}

/** `reserved` with slow namespaces passed over. Undefined: no namespace is slow. */
export function withoutSlow(rollout: object, reserved: Reserved): Reserved | undefined {
  const slow = slowNamespaces(rollout);
  if (slow.size === 0) return undefined;
  const { refused } = reserved;
  const namespaces = new Set([...refused.passedOver.namespaces, ...slow]);
  return { ...reserved, refused: { ...refused, passedOver: { ...refused.passedOver, namespaces } } };
}

interface InNamespace {
  readonly namespace: string;
}

/** The turns of namespaces in one batch. */
export class NamespaceTurns {
  readonly #rollout: { readonly clock: Clock };
  /** A batch that has their pods although they were slow before has no others. */
  readonly #slowBefore: ReadonlySet<string>;
  readonly #underWay = new Map<string, number>();

  constructor(rollout: { readonly clock: Clock }) {
    this.#rollout = rollout;
    this.#slowBefore = new Set(slowNamespaces(rollout));
  }

  /** As `mapWithin` asks. */
  checks<T>(placeOf: (item: T) => InNamespace) {
    return {
      mayBegin: (item: T) => this.#mayBegin(placeOf(item)),
      begin: (item: T) => this.begin(placeOf(item)),
    };
  }

  #mayBegin({ namespace }: InNamespace): boolean {
    return (this.#underWay.get(namespace) ?? 0) < MOST_AT_ONCE;
  }

  /** The namespace became slow in this batch: its other objects are left, and the next decision prefers other namespaces. */
  isLeft({ namespace }: InNamespace): boolean {
    return slowNamespaces(this.#rollout).has(namespace) && !this.#slowBefore.has(namespace);
  }

  /** Call the answer once the write has ended. */
  begin({ namespace }: InNamespace): () => void {
    const { clock } = this.#rollout;
    const beganAtMs = clock.now();
    const count = (change: number) => this.#underWay.set(namespace, (this.#underWay.get(namespace) ?? 0) + change);
    count(1);
    return () => {
      count(-1);
      if (clock.now() - beganAtMs > SLOW_MS) slowNamespaces(this.#rollout).add(namespace);
    };
  }
}
