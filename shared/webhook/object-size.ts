/** Which objects are too intricate to decide on: who may create one must not be able to keep the webhook busy. */

/** A thousand containers with what they usually have; etcd takes no object that is much larger. */
const MAX_VALUES = 20_000;
const MAX_DEPTH = 100;
/** As much as all annotations of an object may have together; a container can't be started with a longer argument. */
const MAX_TEXT = 256 * 1024;

interface Branch {
  readonly value: object;
  readonly depth: number;
}

/**
 * One sentence when the object has too many values, too long a text or nests too deep, without looking at more of it than that. What the
 * API server keeps in metadata.managedFields is not counted: it is about the others, and nobody decides on it.
 */
export function sizeProblem(object: unknown): string | undefined {
  const left: Branch[] = [{ value: [object], depth: 0 }];
  let values = 0;
  for (let branch = left.pop(); branch !== undefined; branch = left.pop()) {
    const children = childrenOf(branch);
    values += children.length;
    if (values > MAX_VALUES) return `the object has more than ${MAX_VALUES} values`;
    if (branch.depth > MAX_DEPTH) return `the object nests deeper than ${MAX_DEPTH} levels`;
    if (children.some(isTooLong)) return `the object has a text of more than ${MAX_TEXT} characters`;
    for (const value of children.filter(isBranch)) left.push({ value, depth: branch.depth + 1 });
  }
  return undefined;
}

/** metadata is at the second level of an object. */
function childrenOf({ value, depth }: Branch): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return Object.keys(value).flatMap((key) => (depth === 2 && key === "managedFields" ? [] : [Reflect.get(value, key)]));
}

function isTooLong(value: unknown): boolean {
  return typeof value === "string" && value.length > MAX_TEXT;
}

function isBranch(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
