/** Compares JSON values and lists where they differ. */

export interface Difference {
  /** JSON path such as $.spec.containers[0].image */
  readonly path: string;
  /** the expected value; undefined: absent */
  readonly expected: unknown;
  readonly actual: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function pathOf(parent: string, key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${parent}.${key}` : `${parent}[${JSON.stringify(key)}]`;
}

function compareLists(actual: readonly unknown[], expected: readonly unknown[], path: string): readonly Difference[] {
  const length = Math.max(actual.length, expected.length);
  return Array.from({ length }, (_, index) => compare(actual[index], expected[index], `${path}[${index}]`)).flat();
}

/**
 * Returns every place where `actual` is not deeply equal to `expected`. A member that is undefined equals an absent
 * one.
 */
export function compare(actual: unknown, expected: unknown, path = "$"): readonly Difference[] {
  if (Array.isArray(actual) && Array.isArray(expected)) return compareLists(actual, expected, path);
  if (isFields(actual) && isFields(expected)) {
    const keys = new Set([...Object.keys(expected), ...Object.keys(actual)]);
    return [...keys].flatMap((key) => compare(actual[key], expected[key], pathOf(path, key)));
  }
  return actual === expected ? [] : [{ path, expected, actual }];
}

const LONGEST_VALUE = 160;

function show(value: unknown): string {
  const text = value === undefined ? "(absent)" : JSON.stringify(value);
  return text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE)}… (${text.length} characters)`;
}

/** Cuts two long texts with the same start to a part around their first difference. */
function fromFirstDifference({ expected, actual }: Difference): readonly [unknown, unknown] {
  if (typeof expected !== "string" || typeof actual !== "string" || expected.length <= LONGEST_VALUE) {
    return [expected, actual];
  }
  const parting = [...expected].findIndex((_, index) => expected[index] !== actual[index]);
  const start = Math.max(0, (parting < 0 ? expected.length : parting) - 40);
  return start === 0 ? [expected, actual] : [`…${expected.slice(start)}`, `…${actual.slice(start)}`];
}

export function formatDifference(difference: Difference): string {
  const [expected, actual] = fromFirstDifference(difference);
  return `${difference.path}\n        expected ${show(expected)}\n        actual   ${show(actual)}`;
}
