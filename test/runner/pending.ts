/** The vector files that the product cannot answer yet, by side. A file leaves this list when its suite is complete. */

export const pending: Readonly<Record<string, readonly string[]>> = {
  webhook: [],
  controller: [],
  statefulset: [],
};
