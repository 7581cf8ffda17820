/**
 * Remembers the SidecarSet that a pass works for at this moment. Several are rolled out at once, and may reserve one
 * pod.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { DOINGS, type Doing } from "../../shared/doings.ts";

const current = new AsyncLocalStorage<string | undefined>();

DOINGS.subscribe((message) => {
  const doing = message as Doing;
  const name = doing.values["sidecarset.name"];
  if (typeof name === "string") doing.within = (work) => current.run(name, work);
});

/** Returns its name; undefined: the work is for no SidecarSet, or for all. */
export function sidecarSetNow(): string | undefined {
  return current.getStore();
}

/** Returns a function that runs `act` later for the present SidecarSet. */
export function forSidecarSetOfNow<T>(act: () => T): () => T {
  const name = sidecarSetNow();
  return () => current.run(name, act);
}
