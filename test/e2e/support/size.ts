/** Sets the number of repetitions in tests: few in CI, many in `npm run soak`. */
export const IS_SOAK = process.env["E2E_SOAK"] === "1";

/** Returns `ci` in `npm run test:e2e`, and `soak` in `npm run soak`. */
export function size({ ci, soak }: { readonly ci: number; readonly soak: number }): number {
  return IS_SOAK ? soak : ci;
}
