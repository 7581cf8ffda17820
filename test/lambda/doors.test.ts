import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ALBEvent, APIGatewayProxyEvent, APIGatewayProxyEventV2 } from "aws-lambda";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { lambdaWebhook } from "../../functions/lambda/http.ts";
import { severalClusters } from "../../functions/lambda/several-clusters.ts";
import type { AdmissionReview, ConversionReview } from "../../shared/api/admission.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { createLog } from "../../shared/log.ts";
import { answerConversions, convertSidecarSets } from "../../shared/webhook/handlers/sidecarset-conversion.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { commonName, createAuthority } from "../webhook/certificates.ts";
import {
  type DoorRequest,
  functionUrl,
  httpApi,
  loadBalancer,
  loadBalancerMultiValue,
  namedStage,
  restApi,
  TARGET_GROUP,
} from "./events.ts";

const DOORS = { functionUrl, httpApi, namedStage, restApi, loadBalancer, loadBalancerMultiValue };
const MULTI_VALUE: ReadonlySet<string> = new Set(["restApi", "loadBalancerMultiValue"]);
type Door = keyof typeof DOORS;
const PATH = "/mutate-apps-kruise-io-sidecarset";
const NAME = "kube-apiserver";

const token = randomBytes(32).toString("base64url");
const secret = randomBytes(32).toString("base64url");
let folder: string;
let right: string;
let wrong: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "doors-"));
  await writeFile(join(folder, "secrets"), secret);
  await writeFile(join(folder, "tokens"), token);
  const { sign } = await createAuthority();
  right = (await sign({ subject: commonName(NAME) })).cert;
  wrong = (await sign({ subject: commonName("somebody") })).cert;
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

/** Returns a new function with this configuration. */
function created(mode: string, more: Readonly<Record<string, string>> = {}) {
  const env = {
    AUTHENTICATION: mode,
    PATH_SECRETS: join(folder, "secrets"),
    BEARER_TOKENS: join(folder, "tokens"),
    CLIENT_NAMES: NAME,
    CLIENT_CERTIFICATE_FROM: "",
    LOAD_BALANCER_LISTENER: `${TARGET_GROUP}:443`,
    LOG_LEVEL: "error",
    ...more,
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return lambdaWebhook(() => ({
    admissions: { [PATH]: mutateSidecarSet },
    conversions: { "/convert": answerConversions(convertSidecarSets) },
  }));
}

/** Splits a text, because no text of an object may be longer than 256 KiB. */
const pieces = (text: string) => ({ ...text.match(/.{1,200000}/gs) });
const sidecarSet = (padding = "") => ({
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "web", annotations: pieces(padding) },
  spec: { selector: { matchLabels: { a: "b" } }, containers: [{ name: "agent", image: "agent:1" }] },
});
function review(padding = ""): string {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const request = { uid: "u", operation: "CREATE", resource, object: sidecarSet(padding) };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}
const inPath = (body: string): DoorRequest => ({ path: registeredPath(secret, PATH), body });
type Event = APIGatewayProxyEventV2 | APIGatewayProxyEvent | ALBEvent;
const responseOf = ({ body = "" }: { readonly body?: string | undefined }) =>
  (JSON.parse(body) as AdmissionReview).response;

describe.each(Object.keys(DOORS) as Door[])("%s:", (name) => {
  const door: (request: DoorRequest) => Event = DOORS[name];

  test("a request with the secret path is answered with a patch", async () => {
    const result = await created("secret-path")(door(inPath(review())));
    expect(result).toMatchObject({ statusCode: 200, isBase64Encoded: false });
    expect(responseOf(result)).toMatchObject({ uid: "u", allowed: true, patchType: "JSONPatch" });
    const headers = MULTI_VALUE.has(name) ? result.multiValueHeaders : result.headers;
    expect(headers?.["content-type"]).toEqual(MULTI_VALUE.has(name) ? ["application/json"] : "application/json");
  });

  test("a body in base64 gets the same answer as a plain body", async () => {
    const handler = created("secret-path");
    const plain = await handler(door(inPath(review("ä"))));
    expect(await handler(door({ ...inPath(review("ä")), isBase64Encoded: true }))).toEqual(plain);
  });

  test("the function answers the same event twice in the same way and does not change the event", async () => {
    const handler = created("secret-path");
    const event = door(inPath(review()));
    const before = structuredClone(event);
    const answers = [await handler(event), await handler(event)];
    expect(answers[0]).toEqual(answers[1]);
    expect(event).toEqual(before);
  });

  test.each([
    ["a request without a secret", { path: PATH }],
    ["a request with a wrong secret", { path: `/s/${"x".repeat(43)}${PATH}` }],
    [
      "a request with the secret of another path",
      { path: registeredPath(randomBytes(32).toString("base64url"), PATH) },
    ],
    ["a request to an unknown path", { path: "/elsewhere" }],
    ["a request with the method GET", { path: PATH, method: "GET" }],
  ])("%s is answered with 401", async (_, shape) => {
    const { statusCode, body = "" } = await created("secret-path")(door({ body: review(), ...shape }));
    expect([statusCode, body.includes(secret)]).toEqual([401, false]);
  });

  test("a request with a bearer token is accepted, and a header with two tokens is refused", async () => {
    const handler = created("bearer-token");
    const send = async (header: string, value: string) =>
      (await handler(door({ path: PATH, body: review(), headers: { [header]: value } }))).statusCode;
    expect(await send("authorization", `Bearer ${token}`)).toBe(200);
    if (name.startsWith("loadBalancer")) expect(await send("Authorization", `Bearer ${token}`)).toBe(200);
    expect(await send("authorization", `Bearer ${token}, Bearer ${token}`)).toBe(401);
  });

  test("a request without a body is answered with 400", async () => {
    expect((await created("secret-path")(door(inPath("")))).statusCode).toBe(400);
  });
});

describe("client certificates:", () => {
  const send = async (from: string, door: Door, more: Partial<DoorRequest>) => {
    const handler = created("client-certificate", { CLIENT_CERTIFICATE_FROM: from });
    return (await handler(DOORS[door]({ path: PATH, body: review(), ...more }))).statusCode;
  };
  const leaf = () => ({ "x-amzn-mtls-clientcert-leaf": encodeURIComponent(right) });

  test("API Gateway's field for the certificate gives access only with the right name", async () => {
    expect(await send("api-gateway", "httpApi", { certificate: right })).toBe(200);
    expect(await send("api-gateway", "httpApi", { certificate: wrong })).toBe(401);
    expect(await send("api-gateway", "httpApi", { certificate: "-----BEGIN CERTIFICATE-----\nx" })).toBe(401);
    expect(await send("api-gateway", "httpApi", {})).toBe(401);
  });

  test.each(["loadBalancer", "loadBalancerMultiValue"] as const)(
    "the header of a load balancer (%s) gives access only with the right name",
    async (door) => {
      expect(await send("load-balancer", door, { certificate: right })).toBe(200);
      expect(await send("load-balancer", door, { certificate: wrong })).toBe(401);
      expect(await send("load-balancer", door, { headers: { "x-amzn-mtls-clientcert-leaf": "%E0%A4%A" } })).toBe(401);
      expect(await send("load-balancer", door, {})).toBe(401);
    },
  );

  test("the field of a REST API for the certificate gives access only with the right name", async () => {
    expect(await send("api-gateway", "restApi", { certificate: right })).toBe(200);
    expect(await send("api-gateway", "restApi", { certificate: wrong })).toBe(401);
    expect(await send("api-gateway", "restApi", { headers: leaf() })).toBe(401);
    expect(await send("load-balancer", "restApi", { certificate: right, headers: leaf() })).toBe(401);
  });

  test("a request by Function URL is refused, also with the header of a load balancer", async () => {
    expect(await send("api-gateway", "functionUrl", {})).toBe(401);
    expect(await send("load-balancer", "functionUrl", { headers: leaf() })).toBe(401);
    expect(await send("api-gateway", "functionUrl", { headers: leaf() })).toBe(401);
  });

  test("the function accepts a certificate only from the configured kind of front door", async () => {
    expect(await send("api-gateway", "loadBalancer", { certificate: right })).toBe(401);
    expect(await send("load-balancer", "httpApi", { certificate: right })).toBe(401);
    expect(await send("api-gateway", "httpApi", { headers: leaf() })).toBe(401);
  });

  describe("forged headers of a load balancer:", () => {
    const LEAF = "x-amzn-mtls-clientcert-leaf";
    const [single, multi] = [loadBalancer, loadBalancerMultiValue];
    const request = (certificate = right) => ({ path: PATH, body: review(), certificate });
    const code = async (event: ALBEvent, settings: Readonly<Record<string, string>> = {}) => {
      const given = { CLIENT_CERTIFICATE_FROM: "load-balancer", ...settings };
      return (await created("client-certificate", given)(event)).statusCode;
    };
    const leafOf = (event: ALBEvent) => event.headers?.[LEAF] ?? event.multiValueHeaders?.[LEAF]?.[0] ?? "";
    const withLeaf = (event: ALBEvent, ...leaves: readonly string[]): ALBEvent =>
      event.multiValueHeaders
        ? { ...event, multiValueHeaders: { ...event.multiValueHeaders, [LEAF]: [...leaves] } }
        : { ...event, headers: { ...event.headers, [LEAF]: leaves.join(",") } };

    test("a single certificate is accepted with and without a newline at its end", async () => {
      for (const certificate of [right, right.trimEnd(), `${right.trimEnd()}\n`]) {
        expect(await code(single(request(certificate)))).toBe(200);
        expect(await code(multi(request(certificate)))).toBe(200);
      }
    });

    test.each([single, multi])("two certificates in the header are refused in any order (case %#)", async (door) => {
      const [ours, theirs] = [leafOf(door(request())), leafOf(door(request(wrong)))];
      for (const leaves of [
        [ours, ours],
        [ours, theirs],
        [theirs, ours],
        [ours, ""],
        ["", ours],
      ])
        expect(await code(withLeaf(door(request()), ...leaves)), leaves.join().slice(0, 40)).toBe(401);
    });

    test.each([
      ["with two PEM blocks", (ours: string, theirs: string) => `${ours}${theirs}`],
      ["with two PEM blocks on separate lines", (ours: string, theirs: string) => `${ours}%0A${theirs}`],
      ["with the same PEM block twice", (ours: string) => `${ours}${ours}`],
      ["with a comma between two PEM blocks", (ours: string, theirs: string) => `${ours},${theirs}`],
      ["with a comma and a space between two PEM blocks", (ours: string, theirs: string) => `${ours}, ${theirs}`],
      ["with a comma at the end", (ours: string) => `${ours},`],
      ["with an encoded comma between two PEM blocks", (ours: string, theirs: string) => `${ours}%2C${theirs}`],
      ["with a character before the PEM block", (ours: string) => `x${ours}`],
      ["with a line before the PEM block", (ours: string) => `x%0A${ours}`],
      ["with a character after the PEM block", (ours: string) => `${ours}x`],
      ["with a zero byte at the end", (ours: string) => `${ours}%00`],
      [
        "with a block of type TRUSTED CERTIFICATE",
        (ours: string) => ours.replaceAll("CERTIFICATE", "TRUSTED%20CERTIFICATE"),
      ],
      ["without PEM", () => Buffer.from("x").toString("base64")],
    ])("a certificate header %s is refused", async (_, join) => {
      for (const door of [single, multi]) {
        const [ours, theirs] = [leafOf(door(request())), leafOf(door(request(wrong)))];
        // The newline at the end of the first block may be absent.
        for (const first of [ours, ours.replace(/%0A$/, "")])
          expect(await code(withLeaf(door(request()), join(first, theirs)))).toBe(401);
      }
    });

    test("a certificate in both forms of headers, or in header names of different case, is refused", async () => {
      const event = single(request());
      const { multiValueHeaders } = multi(request());
      expect(await code({ ...event, ...(multiValueHeaders ? { multiValueHeaders } : {}) })).toBe(401);
      const twice = { ...event.headers, "X-Amzn-Mtls-Clientcert-Leaf": leafOf(single(request(wrong))) };
      expect(await code({ ...event, headers: twice })).toBe(401);
    });

    test.each([
      ["another target group", { requestContext: { elb: { targetGroupArn: `${TARGET_GROUP}2` } } }],
      ["no load balancer", { requestContext: {} as ALBEvent["requestContext"] }],
    ])("a certificate from %s is refused", async (_, change) => {
      expect(await code({ ...single(request()), ...change })).toBe(401);
    });

    test.each([
      ["x-forwarded-port", "8443"],
      ["x-forwarded-port", "443, 443"],
      ["x-forwarded-port", ""],
      ["x-forwarded-proto", "http"],
    ])("a certificate from a listener whose header %s is %j is refused", async (name, value) => {
      expect(await code(single({ ...request(), headers: { [name]: value } }))).toBe(401);
      expect(await code(multi({ ...request(), headers: { [name]: value } }))).toBe(401);
    });

    test.each(["", TARGET_GROUP, `${TARGET_GROUP}:0`, "webhooks:443"])(
      "a function with the invalid listener %j does not start",
      (listener) => {
        const settings = { CLIENT_CERTIFICATE_FROM: "load-balancer", LOAD_BALANCER_LISTENER: listener };
        expect(() => created("client-certificate", settings)).toThrow(/LOAD_BALANCER_LISTENER/);
      },
    );
  });
});

/** Returns a request whose event has this number of bytes as JSON. */
function ofSize(door: (request: DoorRequest) => Event, bytes: number): Event {
  const empty = JSON.stringify(door(inPath(review()))).length;
  const padded = JSON.stringify(door(inPath(review("x".repeat(bytes - empty))))).length;
  return door(inPath(review("x".repeat(bytes - empty - (padded - bytes)))));
}

describe("size limits of each front door:", () => {
  const MB = 1024 * 1024;

  test.each([
    ["functionUrl", 6 * MB],
    ["httpApi", 6 * MB],
    ["loadBalancer", MB],
    ["loadBalancerMultiValue", MB],
  ] as const)("the largest request of %s, %i bytes, is answered", async (name, bytes) => {
    const event = ofSize(DOORS[name], bytes);
    expect(JSON.stringify(event).length).toBe(bytes);
    const result = await created("secret-path")(event);
    expect(responseOf(result)).toMatchObject({ uid: "u", allowed: true });
    expect(JSON.stringify(result).length).toBeLessThan(bytes);
  });

  test.each([
    ["functionUrl", 6 * MB],
    ["loadBalancer", MB],
  ] as const)("an answer that is too large for %s becomes a failure with a clear message", async (name, bytes) => {
    // JSON escapes each quote of the answer once more.
    const objects = Array.from({ length: 10 }, () => sidecarSet('"'.repeat(bytes / 24)));
    const request = { uid: "u", desiredAPIVersion: "apps.kruise.io/v1alpha1", objects };
    const body = JSON.stringify({ apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", request });
    const result = await created("secret-path")(DOORS[name]({ path: registeredPath(secret, "/convert"), body }));
    expect(JSON.stringify(result).length).toBeLessThan(bytes);
    const { response } = JSON.parse(result.body ?? "") as ConversionReview;
    expect(response).toMatchObject({ uid: "u", convertedObjects: [], result: { status: "Failure" } });
    expect(response?.result.message).toMatch(/^the answer of \d+ bytes is larger than the front door/);
  });
});

test.each([
  ["a schedule", { source: "aws.events", "detail-type": "Scheduled Event" }],
  ["a plugin that keeps functions warm", { source: "serverless-plugin-warmup" }],
  ["an empty object", {}],
  ["null", null],
  ["a text", "x"],
  // Cases similar to ones that users reported; all were right at the first try.
  ["messages of a queue", { Records: [{ eventSource: "aws:sqs", body: "{}" }] }],
  ["a WebSocket that connects", { requestContext: { routeKey: "$connect", eventType: "CONNECT" } }],
  ["a number", 1],
  ["a request without its context", { rawPath: PATH, body: review() }],
  ["a request context without a path", { requestContext: {}, httpMethod: "POST" }],
])("an event of %s, which is no HTTP request, is answered with one sentence", async (_, event) => {
  const result = await created("secret-path")(event as never);
  expect(result).toMatchObject({
    statusCode: 400,
    body: expect.stringMatching(/^the event is no HTTP request; call /),
  });
});

test("a path that only begins like the named stage stays unchanged", async () => {
  const event = namedStage(inPath(review()));
  const answer = await created("secret-path")({ ...event, rawPath: `/production${event.rawPath.slice(5)}` });
  expect(answer.statusCode).toBe(401);
});

test("a function without AUTHENTICATION does not start", () => {
  expect(() => created("")).toThrow(/^AUTHENTICATION is not set/);
});

test("cluster settings that could not be used are read again after ten seconds", async () => {
  vi.stubEnv("CLUSTERS", JSON.stringify({ eu: { CLUSTER_SERVER: "https://10.0.0.1" } }));
  const now = vi.spyOn(performance, "now");
  onTestFinished(() => void now.mockRestore());
  let made = 0;
  const handler = severalClusters(
    () => {
      made++;
      return async () => ({ statusCode: 500 });
    },
    createLog("error", () => undefined),
  );
  const ask = async (atMs: number) => {
    now.mockReturnValue(atMs);
    await handler(functionUrl({ path: `/clusters/eu${PATH}`, body: "{}" }));
    return made;
  };
  const first = await ask(0);
  expect([await ask(9_999), await ask(10_000)]).toEqual([first, first + 1]);
});
