/** The number of repetitions in tests: a few in CI, many in `npm run soak`. */
export const IS_SOAK = process.env["E2E_SOAK"] === "1";

/** `ci` in `npm run test:e2e`, `soak` in `npm run soak`. */
export function size({ ci, soak }: { readonly ci: number; readonly soak: number }): number {
  return IS_SOAK ? soak : ci;
}
