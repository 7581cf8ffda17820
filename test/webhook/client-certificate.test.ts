/** Tests the names in a client certificate, and certificates in a header. */
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

describe("isCertificateOf:", () => {
  test.each<[string, Wish, string]>([
    ["the common name after an organization", { subject: [organization, ...commonName("api")] }, "api"],
    ["the common name before an organization", { subject: [...commonName("api"), organization] }, "api"],
    ["an alternative name with a comma", { uris: ["spiffe://a,b"] }, "spiffe://a,b"],
    ["an alternative name between two others", { names: ["x", "api", "y"] }, "api"],
    ["an alternative name after one with a quote", { uris: ['urn:"x"', "urn:api"] }, "urn:api"],
  ])("isCertificateOf accepts %s", async (_, wish, name) => {
    const certificate = new X509Certificate(await signed(wish));
    expect(isCertificateOf(certificate, ["else", name], at("2026-01-15T00:00:00Z"))).toBe(true);
    expect(isCertificateOf(certificate, ["else"], at("2026-01-15T00:00:00Z"))).toBe(false);
  });

  test.each<[string, Wish, string]>([
    ["an organization", { subject: [...commonName("api"), organization] }, "system:masters"],
    ["one of two common names", { subject: [...commonName("api"), ...commonName("web")] }, "api"],
    ["the end of an organization", { subject: [{ name: "organizationName", value: "xapi" }] }, "api"],
    ["a part of an alternative name with a comma", { uris: ["spiffe://a, DNS:api"] }, "api"],
    ["an empty name for a certificate without a name", {}, ""],
  ])("isCertificateOf does not accept %s", async (_, wish, name) => {
    const certificate = new X509Certificate(await signed(wish));
    expect(isCertificateOf(certificate, [name], at("2026-01-15T00:00:00Z"))).toBe(false);
  });
});

test.each([
  ["2025-12-31T23:59:59.999Z", false],
  [FROM, true],
  [TO, true],
  ["2026-02-01T00:00:00.001Z", false],
])("at %s the validity of a certificate for January is %s", async (now, isValid) => {
  const certificate = new X509Certificate(await signed({ subject: commonName("api") }));
  expect(isCertificateOf(certificate, ["api"], at(now))).toBe(isValid);
});

describe("certificateIn:", () => {
  const unix = (pem: string) => `${pem.replace(/\r/g, "").trim()}\n`;
  test.each<[string, (pem: string) => string]>([
    ["line feeds", unix],
    ["carriage returns", (pem) => unix(pem).replace(/\n/g, "\r\n")],
    ["no line break at the end", (pem) => unix(pem).trim()],
  ])("certificateIn reads a certificate with %s", async (_, written) => {
    const pem = await signed({ subject: commonName("api") });
    expect(certificateIn(written(pem))?.fingerprint256).toBe(new X509Certificate(pem).fingerprint256);
  });

  test.each<[string, (pem: string) => string | undefined]>([
    ["a missing header", () => undefined],
    ["an empty header", () => ""],
    ["two certificates", (pem) => unix(pem) + unix(pem)],
    ["text before the certificate", (pem) => `subject=x\n${unix(pem)}`],
    ["text after the certificate", (pem) => `${unix(pem)}x`],
    ["a PEM frame around other data", () => unix("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")],
    ["a certificate that is cut off", (pem) => unix(pem).replace(/\n[^-\n]+\n(?=-----END)/, "\n")],
  ])("certificateIn is undefined for %s", async (_, given) => {
    const pem = await signed({ subject: commonName("api") });
    expect(certificateIn(given(pem))).toBeUndefined();
  });
});
