/** Tests that docs/annotations.md has exactly the keys of names.ts. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { withAnnotations } from "../../infra/doc-tables.ts";

const page = readFileSync("docs/annotations.md", "utf8");
const names = readFileSync("shared/api/names.ts", "utf8");

/** Keys that Kubernetes defines. */
const KUBERNETES = [
  "kubernetes.io/config.mirror",
  "kubernetes.io/metadata.name",
  "storageclass.kubernetes.io/is-default-class",
];

const spelled = [...names.matchAll(/_(?:ANNOTATION|LABEL|PREFIX|FINALIZER|ACQUIRED|ENV) =\s+"([^"]+)"/g)].map(
  ([, name = ""]) => name,
);

const shown = [...page.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);

describe("docs/annotations.md:", () => {
  const keys = spelled.filter(
    (key) => (/[/_]/.test(key) || key.startsWith("controller-")) && !KUBERNETES.includes(key),
  );

  it("names.ts has more than 45 keys", () => expect(keys.length).toBeGreaterThan(45));

  it.each(keys)("docs/annotations.md has the key %s", (key) =>
    expect(shown.some((code) => code.startsWith(key))).toBe(true),
  );

  it("docs/annotations.md has the annotations of a SidecarSet as the table of the code has them", () => {
    expect(withAnnotations(page)).toBe(page);
  });

  it("docs/annotations.md has no key that is missing in the code", () => {
    const code = `${names}${readFileSync("shared/controller/loop/lease.ts", "utf8")}`;
    const keys = shown.map((one) => one.split(":")[0] ?? "").filter((one) => /^[a-z.]+\.io\/[a-z-]+$/.test(one));
    expect(keys.length).toBeGreaterThan(30);
    expect(keys.filter((key) => !code.includes(`"${key}"`))).toEqual([]);
  });
});
