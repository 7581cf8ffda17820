/** Which lines of a log CloudWatch would count, by the part of its filter syntax that our filters use. */

interface Filter {
  readonly Properties: {
    readonly FilterPattern: string;
    readonly MetricTransformations: readonly { readonly MetricName: string }[];
  };
}

const TERM = /^\(?\$\.([\w.[\]]+) (=|>) ("[^"]*"|\d+)\)?$/;

/** `$.a.b`, `$.a[0]` */
function valueAt(line: unknown, path: string): unknown {
  const names = path.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
  return names.reduce<unknown>((one, name) => (one as Record<string, unknown> | undefined)?.[name], line);
}

function holds(line: unknown, term: string): boolean {
  const [, path = "", operator, wanted = ""] = TERM.exec(term) ?? [];
  if (path === "") throw new Error(`${term}: no term that this knows`);
  const value = valueAt(line, path);
  if (operator === ">") return typeof value === "number" && value > Number(wanted);
  if (wanted === '"*"') return value !== undefined;
  return JSON.stringify(value) === wanted;
}

/** Of these lines of JSON. */
export function countedBy(filter: object, lines: readonly object[]): number {
  const pattern = (filter as Filter).Properties.FilterPattern.replace(/^\{ (.*) \}$/, "$1");
  const [, needed, rest = pattern] = /^(\([^()]+\)) && \((.*)\)$/.exec(pattern) ?? [];
  const terms = rest.split(" || ");
  const counted = lines.filter((line) => needed === undefined || holds(line, needed));
  return counted.filter((line) => terms.some((term) => holds(line, term))).length;
}

export function metricOf(filter: object): string {
  return (filter as Filter).Properties.MetricTransformations[0]?.MetricName ?? "";
}
