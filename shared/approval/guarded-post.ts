/** Posts over HTTP to an outside server, only at the checked address, and without following redirects. */
import { promises as dns, type LookupAddress } from "node:dns";
import http from "node:http";
import https from "node:https";
import { BlockList, isIPv4, isIPv6, type LookupFunction } from "node:net";

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

export const resolveName: Resolve = (name) => dns.lookup(name, { all: true });

export const MOST_BYTES = 65_536;

interface Permission {
  /** true: it may be in a private network, or on this machine */
  readonly isPrivate: boolean;
  /** name of the setting that allows it */
  readonly setting: string;
  /** the role of the server, for sentences */
  readonly what: "gate" | "metrics server" | "receiver";
}

/** The address, or the reason why none is allowed. One forbidden address forbids all: any may be used next. */
export async function addressOf(
  { hostname }: URL,
  { isPrivate, setting, what }: Permission,
  { resolve, timeout }: { readonly resolve: Resolve; readonly timeout: AbortSignal },
): Promise<LookupAddress | string> {
  const aborted = new Promise<never>((_, reject) => {
    timeout.addEventListener("abort", () => reject(timeout.reason), { once: true });
  });
  const addresses = await Promise.race([resolve(hostname.replaceAll(/[[\]]/g, "")), aborted]);
  if (addresses.every(({ address }) => mayConnect(address, isPrivate))) return addresses[0] ?? "it has no address";
  return isPrivate ? `it has an address that no ${what} may have` : `it is in a private network (${setting})`;
}

interface Answer {
  readonly code: number;
  /** body of the answer; undefined: it is too long */
  readonly body: string | undefined;
}

interface Posting {
  readonly address: LookupAddress;
  readonly timeout: AbortSignal;
  /** true: the body is not read, because a server may send it slowly; absent: it is read */
  readonly isHeadEnough?: boolean;
  /** headers in addition to those for JSON, or in their place */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Opens a new connection to this address, even if the name has another address by now. */
export function post(url: URL, body: string, posting: Posting): Promise<Answer> {
  const { address, timeout, isHeadEnough = false, headers: own } = posting;
  const lookup: LookupFunction = (_name, { all }, callback) =>
    all ? callback(null, [address]) : callback(null, address.address, address.family);
  const headers = {
    "content-type": "application/json",
    ...own,
    accept: "application/json",
    "user-agent": "sidecarset-serverless",
  };
  const options = { method: "POST", headers, lookup, agent: false, signal: timeout } as const;
  return new Promise((resolve, reject) => {
    const start = url.protocol === "http:" ? http.request : https.request;
    const request = start(url, options, (response) => {
      const answered = (text: string | undefined) => resolve({ code: response.statusCode ?? 0, body: text });
      if (!isHeadEnough) return void read(response).then(answered, reject);
      answered(undefined);
      response.destroy();
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function read(response: http.IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

// The addresses that a gate may have: public ones, unless settings say that it is private.

/** Addresses that are not public. Source: IANA's registries of special-purpose addresses, and multicast. */
const NOT_PUBLIC = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
] as const;

/** The only IPv6 addresses that are public, except NOT_UNICAST. */
const UNICAST = "2000::/3";
/** Addresses in UNICAST that are not public. Some contain an IPv4 address. */
const NOT_UNICAST = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"] as const;

const privateV4 = listOf(NOT_PUBLIC);
const unicast = listOf([UNICAST]);
const special = listOf(NOT_UNICAST);

function listOf(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [net = "", prefix] = subnet.split("/");
    list.addSubnet(net, Number(prefix), isIPv6(net) ? "ipv6" : "ipv4");
  }
  return list;
}

/**
 * Addresses where no gate can be, with any settings: unspecified and broadcast addresses. The list also has the
 * addresses where clouds give a machine its credentials (AWS, Azure, Alibaba, Google), including link-local ones.
 */
const never = listOf([
  "0.0.0.0/8",
  "100.100.100.200/32",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/128",
  "fd00:ec2::254/128",
  "fd20:ce::254/128",
  "fe80::/10",
  "ff00::/8",
]);

/** Addresses where a machine finds its credentials. They are searched for if no prefix shows an embedded address. */
const credentials = listOf(["100.100.100.200/32", "168.63.129.16/32", "169.254.0.0/16"]);

/** True if connections to the address are allowed. `address`: as a resolver writes it. */
export function mayConnect(address: string, isPrivate: boolean): boolean {
  const family = isIPv6(address) ? "ipv6" : "ipv4";
  if (never.check(address, family)) return false;
  if (family === "ipv6" && carriesNever(address)) return false;
  return isPrivate || isPublic(address);
}

/**
 * Prefix lengths. A network may translate by its own prefix, usually of 96 bits, or a local one in any way (RFC 8215).
 */
const ANYWHERE = [48, 56, 64, 96] as const;

/** Prefixes and the number of bits before the embedded IPv4 address: 6to4, Teredo's server, NAT64, SIIT. */
const CARRIERS = [
  [listOf(["2002::/16"]), 16],
  [listOf(["2001::/32"]), 32],
  [listOf(["64:ff9b::/96"]), 96],
  [listOf(["::ffff:0:0:0/96"]), 96],
] as const;
const teredo = CARRIERS[1][0];

/** True if the address contains a forbidden one: a tunnel or translation sends packets to the address inside. */
function carriesNever(address: string): boolean {
  const groups = groupsOf(address);
  if (ANYWHERE.some((bits) => credentials.check(ipv4At(groups, bits)))) return true;
  // Teredo's address of the client: every bit of it is inverted.
  const client = groups.map((group) => group ^ 0xffff);
  if (teredo.check(address, "ipv6") && never.check(ipv4At(client, 96))) return true;
  return CARRIERS.some(([list, bits]) => list.check(address, "ipv6") && never.check(ipv4At(groups, bits)));
}

/** The IPv4 address after this many bits. It skips the ninth octet, as RFC 6052 does after short prefixes. */
function ipv4At(groups: readonly number[], bits: number): string {
  const octets = groups.flatMap((group) => [group >> 8, group & 0xff]);
  const isSplit = bits >= 48 && bits <= 64;
  const kept = isSplit ? octets.toSpliced(8, 1) : octets;
  return kept.slice(bits / 8, bits / 8 + 4).join(".");
}

/** The eight groups of an IPv6 address without its zone. The last two may be written as IPv4. */
function groupsOf(address: string): readonly number[] {
  const [plain = ""] = address.split("%");
  const [, dotted] = /:([\d.]+\.\d+)$/.exec(plain) ?? [];
  const [a = 0, b = 0, c = 0, d = 0] = (dotted ?? "").split(".").map(Number);
  const text = dotted ? plain.replace(dotted, `${hex(a * 256 + b)}:${hex(c * 256 + d)}`) : plain;
  const [before = [], after = []] = text.split("::").map((part) => part.split(":").filter(Boolean));
  const gap = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return [...before, ...gap, ...after].map((group) => Number.parseInt(group, 16));
}

const hex = (value: number) => value.toString(16);

function isPublic(address: string): boolean {
  if (isIPv6(address)) return unicast.check(address, "ipv6") && !special.check(address, "ipv6");
  return isIPv4(address) && !privateV4.check(address, "ipv4");
}
