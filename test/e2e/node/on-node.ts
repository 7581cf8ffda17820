/** The test files that run on a real node: the folder's own, and others whose promises depend on kubelets. */
const ALSO_ELSEWHERE = ["in-place", "containers", "native-sidecars", "resize", "stuck", "workloads"];

export const ON_NODE = ["test/e2e/node/*.node.ts", ...ALSO_ELSEWHERE.map((file) => `test/e2e/${file}.e2e.ts`)];
