/** A filter that selects the log lines which CloudWatch counts, in the syntax of the product's filters. */

interface Filter {
  readonly Properties: {
    readonly FilterPattern: string;
    readonly MetricTransformations: readonly {
      readonly MetricNamespace: string;
      readonly MetricName: string;
      /** value of the metric: a number, or `$.path` */
      readonly MetricValue: string;
      readonly Dimensions?: readonly { readonly Key: string; readonly Value: string }[];
    }[];
  };
}

const TERM = /^\(?\$\.([\w.[\]]+) (=|>) ("[^"]*"|\d+)\)?$/;

/** Returns the value at a path such as `$.a.b` or `$.a[0]`. */
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
  if (wanted.endsWith('*"')) return typeof value === "string" && value.startsWith(wanted.slice(1, -2));
  return JSON.stringify(value) === wanted;
}

/** Returns the lines of JSON that CloudWatch counts. */
function linesOf(filter: object, lines: readonly object[]): readonly object[] {
  const pattern = (filter as Filter).Properties.FilterPattern.replace(/^\{ (.*) \}$/, "$1");
  const [, needed, rest = pattern] = /^(\([^()]+\)) && \((.*)\)$/.exec(pattern) ?? [];
  const terms = rest.split(" || ");
  const counted = lines.filter((line) => needed === undefined || holds(line, needed));
  return counted.filter((line) => terms.some((term) => holds(line, term)));
}

/** Returns how many of these lines CloudWatch counts. */
export function countedBy(filter: object, lines: readonly object[]): number {
  return linesOf(filter, lines).length;
}

/**
 * Returns the values that CloudWatch takes from these lines, each with its dimension: `Namespace Name
 * [Dimension=Value]`.
 */
export function pointsOf(filter: object, lines: readonly object[]): readonly (readonly [string, number])[] {
  const [made] = (filter as Filter).Properties.MetricTransformations;
  if (made === undefined) return [];
  const { MetricNamespace, MetricName, MetricValue, Dimensions = [] } = made;
  const numberOf = (line: object) =>
    Number(MetricValue.startsWith("$.") ? valueAt(line, MetricValue.slice(2)) : MetricValue);
  return linesOf(filter, lines).map((line) => {
    const dimensions = Dimensions.map(({ Key, Value }) => `${Key}=${valueAt(line, Value.slice(2))}`);
    return [[MetricNamespace, MetricName, ...dimensions].join(" "), numberOf(line)] as const;
  });
}

export function metricOf(filter: object): string {
  return (filter as Filter).Properties.MetricTransformations[0]?.MetricName ?? "";
}
