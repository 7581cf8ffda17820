/** Tests that docs/replace.md has the figures of the last long run. */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

test("docs/replace.md has the figures of test/soak/soak.json, and its number of ready pods fits maxUnavailable", async () => {
  const page = await readFile("docs/replace.md", "utf8");
  const { replace } = JSON.parse(await readFile("test/soak/soak.json", "utf8"));
  const [, pods, share, ready, seconds, restart, date] =
    /([\d,]+) pods were replaced at `maxUnavailable: (\d+)%` with (\d+) ready at the worst moment, in (\d+) s; .*? took (\d+) s \(([\d-]+),/.exec(
      page,
    ) ?? [];
  const count = Number(pods?.replace(",", ""));
  expect(replace).toMatchObject({
    date,
    figures: {
      "pods replaced by evictions": count,
      "of them ready at the worst moment": Number(ready),
      "seconds that it took": Number(seconds),
      "seconds of kubectl rollout restart at the same share": Number(restart),
    },
  });
  expect(Number(ready)).toBeGreaterThanOrEqual(count * (1 - Number(share) / 100));
});
