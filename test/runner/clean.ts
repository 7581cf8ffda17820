/** Brings objects into the form of the controller's vectors, without nulls and empty structs. */

const DROPPED_WHEN_EMPTY: ReadonlySet<string> = new Set([
  "resources",
  "status",
  "strategy",
  "spec",
  "state",
  "lastState",
  "updateStrategy",
  "injectionStrategy",
  "upgradeStrategy",
  "shareVolumePolicy",
]);

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

/** Returns the value without nulls. Empty objects `{}`, which Go always prints for some fields, are removed too. */
export function withoutNoise(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNoise);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => [key, withoutNoise(member)] as const);
  const kept = members.filter(
    ([key, member]) => member !== null && !(DROPPED_WHEN_EMPTY.has(key) && isEmptyObject(member)),
  );
  return Object.fromEntries(kept);
}
