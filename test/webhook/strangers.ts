/** Requests with almost correct credentials: every mode must refuse each of them. */

import { X509Certificate } from "node:crypto";
import type { HttpRequest } from "../../shared/webhook/server/http.ts";
import { pathSecretOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { seededChance } from "../simulation/chance.ts";
import { commonName, createAuthority } from "./certificates.ts";

export interface Proofs {
  readonly token: string;
  readonly secret: string;
  /** common name of the right certificate */
  readonly name: string;
}

export type Shape = Partial<Pick<HttpRequest, "method" | "path" | "query" | "headers" | "clientCertificate">>;

const DAY_MS = 24 * 60 * 60_000;

function tokens({ token, secret }: Proofs): Readonly<Record<string, string>> {
  const swapped = token.replace(/[a-z]/, (letter) => letter.toUpperCase());
  return {
    "an empty header": "",
    "a scheme alone": "Bearer",
    "a scheme and a space": "Bearer ",
    "the token without a scheme": token,
    "another scheme": `Basic ${token}`,
    "a user with the token as password": `Basic ${Buffer.from(`x:${token}`).toString("base64")}`,
    "the wrong token": `Bearer ${"x".repeat(token.length)}`,
    "a character too many": `Bearer ${token}x`,
    "a character too few": `Bearer ${token.slice(0, -1)}`,
    "the first half": `Bearer ${token.slice(0, 20)}`,
    "another case": `Bearer ${swapped}`,
    "the token backwards": `Bearer ${[...token].reverse().join("")}`,
    "the token twice": `Bearer ${token}${token}`,
    "two headers in one": `Bearer ${token}, Bearer ${token}`,
    "two spaces": `Bearer  ${token}`,
    "a tab": `Bearer\t${token}`,
    "a space behind": `Bearer ${token} `,
    "a NUL behind": `Bearer ${token}\0`,
    "a line break in front": `\nBearer ${token}`,
    quotes: `Bearer "${token}"`,
    "the token in base64": `Bearer ${Buffer.from(token).toString("base64")}`,
    "the secret of the path": `Bearer ${secret}`,
    "64 KiB": `Bearer ${"a".repeat(65_536)}`,
    "what is no ASCII": `Bearer ${token.slice(0, -1)}é`,
    "a word that JavaScript knows": "Bearer undefined",
    "nothing at all, in words": "Bearer null",
  };
}

function paths({ token, secret: kept }: Proofs): Readonly<Record<string, string>> {
  const secret = pathSecretOf(kept, "/mutate-pod");
  const swapped = secret.replace(/[a-z]/, (letter) => letter.toUpperCase());
  return {
    "no secret": "/mutate-pod",
    "no segment": "/s/",
    "an empty segment": "/s//mutate-pod",
    "a wrong secret": `/s/${"x".repeat(43)}/mutate-pod`,
    "the secret that is kept": `/s/${kept}/mutate-pod`,
    "the secret that is kept, at another path": `/s/${kept}/validate-apps-kruise-io-sidecarset`,
    "the pod webhook's secret at the registration's": `/s/${secret}/validate-apps-kruise-io-sidecarset`,
    "the pod webhook's secret at the conversion's": `/s/${secret}/convert`,
    "the pod webhook's secret at a hint's": `/s/${secret}/hint-pod-status`,
    "the pod webhook's secret, made from again": `${registeredPath(secret, "/validate-apps-kruise-io-sidecarset")}`,
    "the conversion's secret": `/s/${pathSecretOf(kept, "/convert")}/mutate-pod`,
    "the secret of no path": `/s/${pathSecretOf(kept, "")}/mutate-pod`,
    "a secret too long": `/s/${secret}x/mutate-pod`,
    "a secret too short": `/s/${secret.slice(0, -1)}/mutate-pod`,
    "another case of the secret": `/s/${swapped}/mutate-pod`,
    "the secret backwards": `/s/${[...secret].reverse().join("")}/mutate-pod`,
    "the secret percent-encoded": `/s/%${secret.charCodeAt(0).toString(16)}${secret.slice(1)}/mutate-pod`,
    "a slash percent-encoded": `/s/${secret}%2fmutate-pod`,
    "the secret alone": `/s/${secret}`,
    "an S": `/S/${secret}/mutate-pod`,
    "two slashes": `//s/${secret}/mutate-pod`,
    "a segment in front": `/x/s/${secret}/mutate-pod`,
    "a way up": `/s/x/../${secret}/mutate-pod`,
    "the secret behind": `/mutate-pod/s/${secret}`,
    "the secret in a matrix parameter": `/s/x;${secret}/mutate-pod`,
    "the token as the secret": `/s/${token}/mutate-pod`,
    "another webhook": "/validate-apps-kruise-io-sidecarset",
    "the conversion": "/convert",
    "an unknown path": "/elsewhere",
    "what every object has": "/__proto__",
    "no path": "",
    "an asterisk": "*",
    "a whole URL": `https://x/s/${secret}/mutate-pod`,
    readiness: "/readyz",
  };
}

function headers({ token, secret }: Proofs): Readonly<Record<string, Readonly<Record<string, string>>>> {
  return {
    "the token in a cookie": { cookie: `token=${token}` },
    "the token for a proxy": { "proxy-authorization": `Bearer ${token}` },
    "the token under another name": { "x-authorization": `Bearer ${token}` },
    "the secret in a header": { "x-path-secret": secret },
    "the path rewritten": {
      "x-original-url": registeredPath(secret, "/mutate-pod"),
      "x-forwarded-uri": registeredPath(secret, "/mutate-pod"),
    },
    "a name in a header of a load balancer": { "x-amzn-mtls-clientcert-subject": "CN=kube-apiserver" },
    "a name in a header of a proxy": { "x-remote-user": "system:apiserver", "x-ssl-client-verify": "SUCCESS" },
  };
}

async function certificates({ name }: Proofs): Promise<Readonly<Record<string, string>>> {
  const { sign } = await createAuthority();
  const now = Date.now();
  const right = commonName(name);
  const wishes = {
    "another name": { subject: commonName("somebody") },
    "a name that contains the right one": { subject: commonName(`${name}.example.com`) },
    "part of the right name": { subject: commonName(name.slice(0, -1)) },
    "another case of the name": { subject: commonName(name.toUpperCase()) },
    "the name as an organization": { subject: [{ name: "organizationName", value: name }] },
    "two names": { subject: commonName(`somebody, CN=${name}`) },
    "two names, one of them empty": { subject: commonName(`\nCN=${name}`) },
    "a name with another in it": { subject: commonName(`somebody\\, CN=${name}`) },
    "an alternative name with another in it": { subject: commonName("x"), uris: [`https://x/, DNS:${name}`] },
    "an asterisk for a name": { subject: commonName("*"), names: ["*"] },
    "no name": { subject: [] },
    "a certificate of yesterday": { subject: right, from: new Date(now - 2 * DAY_MS), to: new Date(now - DAY_MS) },
    "a certificate of tomorrow": { subject: right, from: new Date(now + DAY_MS), to: new Date(now + 2 * DAY_MS) },
  };
  const signed = Object.entries(wishes).map(async ([title, wish]) => [title, (await sign(wish)).cert] as const);
  return Object.fromEntries(await Promise.all(signed));
}

const MISTAKES: readonly ((secret: string, at: number, letter: string) => string)[] = [
  (secret, at, letter) => secret.slice(0, at) + letter + secret.slice(at),
  (secret, at) => secret.slice(0, at) + secret.slice(at + 1),
  (secret, at, letter) => secret.slice(0, at) + letter + secret.slice(at + 1),
  (secret, at) => secret.slice(at) + secret.slice(0, at),
  (secret, at) => secret.slice(0, at),
  (secret, at) => `${secret.slice(0, at)}%${secret.charCodeAt(at).toString(16)}${secret.slice(at + 1)}`,
  (secret, at) => secret + secret.slice(at),
];

/** Returns the right token or path with one mistake in its secret. */
function mistaken({ token, secret }: Proofs, seed: number): readonly [string, Shape] {
  const chance = seededChance(seed);
  const [isToken, wrong] = [chance.isLucky(0.5), chance.pick(MISTAKES)];
  const right = isToken ? token : secret;
  const letter = chance.pick([..."abcXYZ019-_.~%/\\\0é"]);
  const made = wrong(right, chance.between(1, right.length - 1), letter);
  const given = made === right ? `${made}x` : made;
  return isToken
    ? [`mistake ${seed} in the token`, { headers: { authorization: `Bearer ${given}` } }]
    : [`mistake ${seed} in the path`, { path: `/s/${given}/mutate-pod` }];
}

/** Returns title → request; `times` multiplies the generated mistakes. */
export async function strangers(proofs: Proofs, times = 1): Promise<ReadonlyMap<string, Shape>> {
  const query = `timeout=10s&token=${proofs.token}&secret=${proofs.secret}`;
  const methods = ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "post", ""];
  const shapes: readonly (readonly [string, Shape])[] = [
    ["nothing", {}],
    ["everything in the query", { query }],
    ...methods.map((method) => [`method ${method || "of no name"}`, { method }] as const),
    ...Object.entries(tokens(proofs)).map(([title, authorization]) => [title, { headers: { authorization } }] as const),
    ...Object.entries(paths(proofs)).map(([title, path]) => [title, { path }] as const),
    ...Object.entries(headers(proofs)).map(([title, more]) => [title, { headers: more }] as const),
    ...Object.entries(await certificates(proofs)).map(
      ([title, pem]) => [title, { clientCertificate: () => new X509Certificate(pem) }] as const,
    ),
  ];
  const more = Array.from({ length: (times - 1) * shapes.length }, (_, seed) => mistaken(proofs, seed));
  return new Map([...shapes, ...more]);
}
