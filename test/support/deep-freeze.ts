/** Freezes values, so that code that changes its input throws. */

/** Returns the same value, frozen with all its members. A frozen value counts as frozen in all its members. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}
