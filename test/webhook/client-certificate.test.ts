/** Whose a client certificate is, by every kind of name, and what of a header is one at all. */
import { X509Certificate } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { certificateIn, isCertificateOf } from "../../shared/webhook/server/client-certificate.ts";
import { commonName, createAuthority } from "./certificates.ts";

const [FROM, TO] = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"];
const at = (time: string) => Date.parse(time);

let authority: Awaited<ReturnType<typeof createAuthority>>;
beforeEach(async () => {
  authority = await createAuthority();
});

type Wish = Parameters<(typeof authority)["sign"]>[0];

async function signed(wish: Wish): Promise<string> {
  return (await authority.sign({ from: new Date(FROM), to: new Date(TO), ...wish })).cert;
}

const organization = { name: "organizationName", value: "system:masters" };

describe("the name that counts", () => {
  test.each<[string, Wish, string]>([
    ["the common name beside an organization", { subject: [organization, ...commonName("api")] }, "api"],
    ["the common name before an organization", { subject: [...commonName("api"), organization] }, "api"],
    ["an alternative name with a comma", { uris: ["spiffe://a,b"] }, "spiffe://a,b"],
    ["an alternative name between two others", { names: ["x", "api", "y"] }, "api"],
    ["an alternative name behind one with a quote", { uris: ['urn:"x"', "urn:api"] }, "urn:api"],
  ])("may be %s", async (_, wish, name) => {
    const certificate = new X509Certificate(await signed(wish));
    expect(isCertificateOf(certificate, ["else", name], at("2026-01-15T00:00:00Z"))).toBe(true);
    expect(isCertificateOf(certificate, ["else"], at("2026-01-15T00:00:00Z"))).toBe(false);
  });

  test.each<[string, Wish, string]>([
    ["an organization", { subject: [...commonName("api"), organization] }, "system:masters"],
    ["one of two common names", { subject: [...commonName("api"), ...commonName("web")] }, "api"],
    ["the end of an organization", { subject: [{ name: "organizationName", value: "xapi" }] }, "api"],
    ["the half of a name with a comma", { uris: ["spiffe://a, DNS:api"] }, "api"],
    ["any without one", {}, ""],
  ])("is not %s", async (_, wish, name) => {
    const certificate = new X509Certificate(await signed(wish));
    expect(isCertificateOf(certificate, [name], at("2026-01-15T00:00:00Z"))).toBe(false);
  });
});

test.each([
  ["2025-12-31T23:59:59.999Z", false],
  [FROM, true],
  [TO, true],
  ["2026-02-01T00:00:00.001Z", false],
])("at %s a certificate of January is valid: %s", async (now, isValid) => {
  const certificate = new X509Certificate(await signed({ subject: commonName("api") }));
  expect(isCertificateOf(certificate, ["api"], at(now))).toBe(isValid);
});

describe("a certificate in a header", () => {
  const unix = (pem: string) => `${pem.replace(/\r/g, "").trim()}\n`;
  test.each<[string, (pem: string) => string]>([
    ["with line feeds", unix],
    ["with carriage returns", (pem) => unix(pem).replace(/\n/g, "\r\n")],
    ["without the last line break", (pem) => unix(pem).trim()],
  ])("is read %s", async (_, written) => {
    const pem = await signed({ subject: commonName("api") });
    expect(certificateIn(written(pem))?.fingerprint256).toBe(new X509Certificate(pem).fingerprint256);
  });

  test.each<[string, (pem: string) => string | undefined]>([
    ["nothing", () => undefined],
    ["an empty text", () => ""],
    ["two of them", (pem) => unix(pem) + unix(pem)],
    ["one behind other text", (pem) => `subject=x\n${unix(pem)}`],
    ["one before other text", (pem) => `${unix(pem)}x`],
    [
      "the frame of one around something else",
      () => unix("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"),
    ],
    ["a cut one", (pem) => unix(pem).replace(/\n[^-\n]+\n(?=-----END)/, "\n")],
  ])("%s is none", async (_, given) => {
    const pem = await signed({ subject: commonName("api") });
    expect(certificateIn(given(pem))).toBeUndefined();
  });
});
