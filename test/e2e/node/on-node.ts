/** The files of tests that run on a real node: its own, and those whose promises rest on what a kubelet does. */
const ALSO_ELSEWHERE = ["in-place", "containers", "native-sidecars", "resize", "stuck", "workloads"];

export const ON_NODE = ["test/e2e/node/*.node.ts", ...ALSO_ELSEWHERE.map((file) => `test/e2e/${file}.e2e.ts`)];
