/** Tests gates over real connections: any answer except a clear yes is a no. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gateAsker } from "../../shared/approval/batch-gates.ts";
import { mayConnect, type Resolve } from "../../shared/approval/guarded-post.ts";
import { parseGateHosts } from "../../shared/settings/called-services.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { PATIENT } from "../support/patient.ts";

const REQUEST = {
  sidecarSet: { name: "agent", uid: "u", generation: 2 },
  revision: "agent-1",
  counts: { matched: 2, updated: 0, updatedReady: 0, unavailable: 0, maxUnavailable: 1 },
  pods: [{ namespace: "shop", name: "web-0", uid: "p" }],
};

const json =
  (body: unknown, code = 200): RequestListener =>
  (_request, response) =>
    void response
      .writeHead(code, { "content-type": "application/json" })
      .end(typeof body === "string" ? body : JSON.stringify(body));

const ANSWERS: Readonly<Record<string, RequestListener>> = {
  "/yes": json({ allow: true }),
  "/no": json({ allow: false, reason: "freeze until\nMonday" }),
  "/bare": json({ allow: false }),
  "/text": json({ allow: "true" }),
  "/broken": json("{"),
  "/nothing": json(""),
  "/error": json({ allow: true }, 503),
  "/created": json({ allow: true }, 201),
  "/long": json({ allow: true, reason: "x".repeat(70_000) }),
  "/redirect": (_request, response) => void response.writeHead(302, { location: "/yes" }).end(),
  "/silent": () => undefined,
  "/cut": (_request, response) =>
    void response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy()),
};

let server: Server;
const seen: { readonly url: string; readonly method: string; readonly body: string; readonly host: string }[] = [];
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const { url = "", method = "", headers } = request;
      seen.push({ url, method, body, host: headers.host ?? "" });
      ANSWERS[url.split("?")[0] ?? ""]?.(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  server?.closeAllConnections();
  server?.close();
});

const port = () => (server.address() as AddressInfo).port;
const here: Resolve = async () => [{ address: "127.0.0.1", family: 4 }];

function ask(path: string, hosts: string, { resolve = here, timeoutMs = PATIENT.timeout } = {}) {
  const asker = gateAsker(parseGateHosts(hosts), resolve);
  return asker?.(new URL(`http://gate.example:${port()}${path}`), REQUEST, timeoutMs);
}
const allowed = () => `http://gate.example:${port()}=private`;

describe("a gate:", () => {
  test("a gate that says yes gets the batch and allows it", async () => {
    expect(await ask("/yes?token=s3cret", allowed())).toEqual({ allow: true });
    const { url, method, body, host } = seen.at(-1) ?? {};
    expect([url, method, host]).toEqual(["/yes?token=s3cret", "POST", `gate.example:${port()}`]);
    expect(JSON.parse(body ?? "")).toEqual(REQUEST);
  });

  test.each([
    ["says no", "/no", "says no: freeze until Monday"],
    ["says no without a reason", "/bare", "says no"],
    ["says yes with a string", "/text", "did not answer with JSON that says allow: true or false"],
    ["answers with broken JSON", "/broken", "did not answer with JSON that says allow: true or false"],
    ["answers with an empty body", "/nothing", "did not answer with JSON that says allow: true or false"],
    ["answers with an error", "/error", "answered 503 rather than 200"],
    ["says yes with a code other than 200", "/created", "answered 201 rather than 200"],
    ["redirects", "/redirect", "answered 302 rather than 200"],
    ["answers with too many bytes", "/long", "answered with more than 65536 bytes"],
    ["closes the connection", "/cut", "cannot be asked: ECONNRESET"],
  ])("a gate that %s does not allow the batch", async (_what, path, did) => {
    const before = seen.length;
    expect(await ask(`${path}?token=s3cret`, allowed())).toEqual({
      allow: false,
      reason: `the gate at gate.example:${port()} ${did}`,
    });
    expect(seen).toHaveLength(before + 1);
  });

  test("a gate that does not answer in time does not allow the batch", async () => {
    const reason = `the gate at gate.example:${port()} did not answer within 0.05 s`;
    expect(await ask("/silent", allowed(), { timeoutMs: 50 })).toEqual({ allow: false, reason });
    const never: Resolve = () => new Promise(() => undefined);
    expect(await ask("/yes", allowed(), { resolve: never, timeoutMs: 50 })).toEqual({ allow: false, reason });
  });

  test.each<[string, () => string, Resolve, RegExp]>([
    [
      "a gate whose host GATE_HOSTS does not name",
      () => "other.example",
      here,
      /may not be asked: GATE_HOSTS does not name http:/,
    ],
    ["a gate whose port GATE_HOSTS does not name", () => "http://gate.example=private", here, /does not name/],
    [
      "a gate over http that GATE_HOSTS names with https",
      () => `gate.example:${port()}=private`,
      here,
      /does not name/,
    ],
    [
      "a gate on this machine that GATE_HOSTS does not name as private",
      () => `http://gate.example:${port()}`,
      here,
      /is in a private network/,
    ],
    [
      "a gate with one private address",
      () => `http://gate.example:${port()}`,
      async () => [
        { address: "8.8.8.8", family: 4 },
        { address: "::ffff:10.0.0.1", family: 6 },
      ],
      /is in a private network/,
    ],
    [
      "a private gate whose name resolves to the metadata address of a machine",
      allowed,
      async () => [
        { address: "127.0.0.1", family: 4 },
        { address: "169.254.169.254", family: 4 },
      ],
      /has an address that no gate may have/,
    ],
    ["a gate without an address", allowed, async () => [], /may not be asked: it has no address/],
    [
      "a gate whose name does not resolve",
      allowed,
      () => Promise.reject(Object.assign(new Error("x"), { code: "ENOTFOUND" })),
      /cannot be asked: ENOTFOUND/,
    ],
  ])("%s is not asked", async (_what, hosts, resolve, reason) => {
    const before = seen.length;
    expect(await ask("/yes", hosts(), { resolve })).toEqual({ allow: false, reason: expect.stringMatching(reason) });
    expect(seen).toHaveLength(before);
  });

  test("gateAsker returns undefined when GATE_HOSTS is empty", () => {
    expect(gateAsker(parseGateHosts(" "))).toBeUndefined();
  });
});

const [PUBLIC, PRIVATE, NEVER] = [
  "may be the address of a gate",
  "may be the address of a private gate",
  "may not be the address of a gate",
] as const;
test.each([
  ["8.8.8.8", PUBLIC],
  ["172.32.0.1", PUBLIC],
  ["2606:4700::1111", PUBLIC],
  ["10.1.2.3", PRIVATE],
  ["100.64.0.1", PRIVATE],
  ["127.0.0.1", PRIVATE],
  ["172.31.0.1", PRIVATE],
  ["192.0.2.1", PRIVATE],
  ["192.168.1.1", PRIVATE],
  ["198.18.0.1", PRIVATE],
  ["::1", PRIVATE],
  ["::ffff:127.0.0.1", PRIVATE],
  ["::ffff:a00:1", PRIVATE],
  ["64:ff9b::a00:1", PRIVATE],
  ["2001:db8::1", PRIVATE],
  ["2002:a00:1::", PRIVATE],
  ["fd00::1", PRIVATE],
  ["169.254.169.254", NEVER],
  ["169.254.170.2", NEVER],
  ["100.100.100.200", NEVER],
  ["168.63.129.16", NEVER],
  ["0.0.0.0", NEVER],
  ["224.0.0.1", NEVER],
  ["255.255.255.255", NEVER],
  ["::", NEVER],
  ["::ffff:169.254.169.254", NEVER],
  ["::ffff:a9fe:a9fe", NEVER],
  ["fd00:ec2::254", NEVER],
  ["fe80::1", NEVER],
  ["fe80::1%eth0", NEVER],
  ["ff02::1", NEVER],
  // These tunnels and translations lead to the embedded address.
  ["64:ff9b::a9fe:a9fe", NEVER],
  ["64:ff9b::169.254.169.254", NEVER],
  ["0064:FF9B:0000:0000:0000:0000:A9FE:A9FE", NEVER],
  ["64:ff9b::6464:64c8", NEVER],
  ["64:ff9b::a83f:8110", NEVER],
  ["64:ff9b::e000:1", NEVER],
  ["64:ff9b:1::a9fe:a9fe", NEVER],
  ["64:ff9b:1:a9fe:a9:fe00::", NEVER],
  ["64:ff9b:1:1a9:fe:a9fe::", NEVER],
  ["64:ff9b:1:1:a9:fea9:fe00:0", NEVER],
  ["64:ff9b:1::a00:1", PRIVATE],
  ["2002:a9fe:a9fe::", NEVER],
  ["2002:a9fe:a9fe::1", NEVER],
  ["2002:6464:64c8:1:2:3:4:5", NEVER],
  ["2001:0:4136:e378:8000:63bf:5601:5601", NEVER],
  ["2001:0:a9fe:a9fe:8000:63bf:f5ff:fffe", NEVER],
  ["2001:0:4136:e378:8000:63bf:f5ff:fffe", PRIVATE],
  ["::ffff:0:a9fe:a9fe", NEVER],
  ["::169.254.169.254", NEVER],
  ["fd00::5efe:a9fe:a9fe", NEVER],
  ["fd00:64::a9fe:a9fe", NEVER],
  ["2606:4700:64::a9fe:a9fe", NEVER],
  ["fd00:64::168.63.129.16", NEVER],
  ["fd00:64::a00:1", PRIVATE],
  ["::ffff:0:a00:1", PRIVATE],
])("%s %s", (address, expected) => {
  expect([mayConnect(address, false), mayConnect(address, true)]).toEqual([expected === PUBLIC, expected !== NEVER]);
});

describe("parseGateHosts:", () => {
  test("parseGateHosts reads a list of origins and which of them are private", () => {
    expect(parseGateHosts("gate.example, https://a.example:8443, http://b.svc:8080=private,[::1]:9=private")).toEqual([
      { origin: "https://gate.example", isPrivate: false },
      { origin: "https://a.example:8443", isPrivate: false },
      { origin: "http://b.svc:8080", isPrivate: true },
      { origin: "https://[::1]:9", isPrivate: true },
    ]);
  });

  test.each([
    "gate.example/path",
    "ftp://gate.example",
    "user@gate.example",
    "*.example",
    "gate.example=public",
    "a b",
    "https://",
    "gate.example/",
  ])("parseGateHosts refuses %s in one sentence", (text) => {
    expect(() => parseGateHosts(text)).toThrow(ConfigError);
    expect(() => parseGateHosts(text)).toThrow(/^GATE_HOSTS names .+, which is not written as host, host:port/);
  });
});
