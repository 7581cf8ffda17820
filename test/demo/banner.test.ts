import { expect, it } from "vitest";
import { bannersOf, programName } from "../../infra/demo/demo.ts";
import { isKnownImage } from "../../infra/demo/stage.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";

const MANIFEST = "fluent/fluent-bit:4.1.0";

function imagesIn(banner: string): readonly string[] {
  return [...banner.matchAll(/"value":"([^"]+)"/g)].map(([, image = ""]) => image);
}

it("the demo suggests a rollout that works and one that fails, also after a rollout that failed", () => {
  const isPullable = (image: string) => isKnownImage(image, [MANIFEST]);
  const banner = bannersOf({ kubeconfig: "kubeconfig", page: "https://127.0.0.1/ui", isPullable });
  const setOf = (image: string) => ({ metadata: { name: "log-agent" }, spec: { containers: [{ name: "a", image }] } });
  const offered = (image: string) => imagesIn(banner({ sidecarSets: [setOf(image) as SidecarSet] }));
  expect(offered("fluent/fluent-bit:4.1.1")).toEqual(["fluent/fluent-bit:4.1.2", "fluent/fluent-bit:no-such-tag"]);
  expect(offered("fluent/fluent-bit:no-such-tag")).toEqual([
    "fluent/fluent-bit:4.1.2",
    "fluent/fluent-bit:no-such-tag",
  ]);
});

it.each([
  ["/home/me/.krew/bin/kubectl-sidecarset", "kubectl sidecarset"],
  ["/usr/local/bin/sidecarset", "sidecarset"],
  ["/app/sidecarset.mjs", "sidecarset"],
  ["/checkout/functions/cli.mjs", "npm run sidecarset --"],
])("a demo that was called as %s names commands that begin with %s", (file, program) => {
  expect(programName(file)).toBe(program);
});
