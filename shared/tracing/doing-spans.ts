/** A span of each thing that is told to be done: passes, their SidecarSets, and what is done for each. */
import { DOINGS, type Doing } from "../doings.ts";
import { attributesOf, contextOf, endSpan, harmless, type Scope } from "./scope.ts";

/** @returns stops it */
export function traceDoings({ tracer, current }: Scope): () => void {
  const listener = harmless((message: unknown) => {
    const doing = message as Doing;
    const span = tracer.startSpan(
      doing.name,
      { attributes: attributesOf(doing.values) },
      contextOf(current.getStore()),
    );
    doing.within = (work) => current.run(span, work);
    doing.end = harmless((ending) => endSpan(span, ending));
  });
  DOINGS.subscribe(listener);
  return () => {
    DOINGS.unsubscribe(listener);
  };
}
