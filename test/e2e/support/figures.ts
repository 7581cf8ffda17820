/** Adds up the counts of tests for the table at the end of the run. */
import { TestRunner } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    figures?: Readonly<Record<string, number>>;
  }
}

/** Adds to a figure of the run, such as "forbidden requests answered 403". May be called only within a test. */
export function addFigure(name: string, count: number): void {
  const meta = TestRunner.getCurrentTest()?.meta;
  if (meta === undefined) throw new Error(`${name}: counted outside of a test`);
  meta.figures = { ...meta.figures, [name]: (meta.figures?.[name] ?? 0) + count };
}
