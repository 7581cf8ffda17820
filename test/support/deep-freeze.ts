/** Makes whoever changes what it shall not change throw. */

/** The same value, with all that it holds; what is frozen already is taken to be so as a whole. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}
