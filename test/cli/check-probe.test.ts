/** Tests the findings of a probe at real TLS servers with right and wrong certificates. */
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { probe } from "../../functions/cli/input/check-probe.ts";
import type { Handshake, Probe } from "../../shared/core/inspect/check/facts.ts";

const DAY_MS = 86_400_000;
const SECRET = "s".repeat(43);
const COMMON = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

interface Wish {
  readonly ip?: string;
  readonly to?: Date;
  readonly from?: Date;
}

type Answers = (path: string) => number;

const onlySecret: Answers = (path) => (path.startsWith(`/s/${SECRET}/`) ? 200 : 401);
const servers: Server[] = [];
let authority: { readonly cert: string; readonly private: string };
let other: string;

beforeAll(async () => {
  const make = () =>
    generate([{ name: "commonName", value: "ca" }], {
      ...COMMON,
      extensions: [{ name: "basicConstraints", cA: true, critical: true }],
    });
  authority = await make();
  other = (await make()).cert;
});
afterAll(() => {
  for (const server of servers) server.close();
});

async function serve({ ip, from, to }: Wish, answers: Answers): Promise<string> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "127.0.0.1" }], {
    ...COMMON,
    ca: { key: authority.private, cert: authority.cert },
    ...(from === undefined ? {} : { notBeforeDate: from }),
    ...(to === undefined ? {} : { notAfterDate: to }),
    extensions: [
      { name: "extKeyUsage", serverAuth: true },
      ...(ip === undefined ? [] : [{ name: "subjectAltName" as const, altNames: [{ type: 7 as const, ip }] }]),
    ],
  });
  const server = createServer({ cert, key }, (request, response) => {
    request.resume();
    response.writeHead(answers(request.url ?? "")).end();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const base64 = (pem: string) => Buffer.from(pem).toString("base64");

function knock(origin: string, caBundle = base64(authority.cert)): Promise<Probe> {
  return probe({ origin, url: `${origin}/s/${SECRET}/mutate-pod`, caBundle, isConversion: false });
}

const handshakeOf = ({ handshake }: Probe): Handshake => {
  if ("unreachable" in handshake) throw new Error(handshake.unreachable);
  return handshake;
};

const RIGHT: Wish = { ip: "127.0.0.1" };

describe("probe of an address:", () => {
  it("the probe reports success for an address with a trusted certificate that refuses strangers and answers on the registered path", async () => {
    const seen = await knock(await serve(RIGHT, onlySecret));
    expect(handshakeOf(seen)).toMatchObject({ problem: undefined, certificate: { names: ["127.0.0.1"] } });
    expect(seen).toMatchObject({ isCaBroken: false, toStranger: { code: 401 }, toRegistered: { code: 200 } });
  });

  it("the probe reports an address that answers strangers", async () => {
    expect(await knock(await serve(RIGHT, () => 200))).toMatchObject({ toStranger: { code: 200 } });
  });

  it("the probe reports an address that refuses the registered secret", async () => {
    expect(await knock(await serve(RIGHT, () => 401))).toMatchObject({ toRegistered: { code: 401 } });
  });

  it("the probe reports an address on which nothing listens", async () => {
    const origin = await serve(RIGHT, onlySecret);
    await new Promise((resolve) => servers.at(-1)?.close(resolve));
    expect((await knock(origin)).handshake).toEqual({ unreachable: expect.stringContaining("ECONNREFUSED") });
  });
});

const WRONG: Readonly<Record<string, readonly [Wish, () => string, RegExp]>> = {
  "from another certificate authority": [RIGHT, () => base64(other), /UNABLE_TO|SELF_SIGNED|SIGNATURE_FAILURE/],
  "for another address": [{ ip: "127.0.0.2" }, () => base64(authority.cert), /ERR_TLS_CERT_ALTNAME_INVALID/],
  "that expired last month": [
    { ...RIGHT, from: new Date(Date.now() - 60 * DAY_MS), to: new Date(Date.now() - 30 * DAY_MS) },
    () => base64(authority.cert),
    /CERT_HAS_EXPIRED/,
  ],
};

describe("probe of a certificate:", () => {
  it.each(Object.entries(WRONG))(
    "the probe reports the error code of a certificate %s and does not send it the secret",
    async (_, [wish, ca, code]) => {
      const paths: string[] = [];
      const origin = await serve(wish, (path) => {
        paths.push(path);
        return 401;
      });
      const seen = await knock(origin, ca());
      expect(handshakeOf(seen).problem).toMatch(code);
      expect(seen.toRegistered).toBeUndefined();
      expect(paths).toEqual(["/mutate-pod"]);
    },
  );

  it("a certificate with only a common name counts as a certificate without names, as for API servers", async () => {
    expect(handshakeOf(await knock(await serve({}, onlySecret))).certificate.names).toEqual([]);
  });

  it("the probe reports a caBundle that is not a certificate", async () => {
    expect(await knock(await serve(RIGHT, onlySecret), base64("hello"))).toMatchObject({ isCaBroken: true });
  });
});
