/** Which addresses a gate may have: where the world can reach it, unless settings say that it is private. */
import { BlockList, isIPv6 } from "node:net";

/** Source: IANA's registries of special-purpose addresses, and multicast. */
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

/** The only addresses of IPv6 that the world can reach … */
const UNICAST = "2000::/3";
/** … but for these, some of which stand for an address of IPv4. */
const NOT_UNICAST = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"] as const;

const privateV4 = listOf(NOT_PUBLIC, "ipv4");
const unicast = listOf([UNICAST], "ipv6");
const special = listOf(NOT_UNICAST, "ipv6");

function listOf(subnets: readonly string[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [net = "", prefix] = subnet.split("/");
    list.addSubnet(net, Number(prefix), family);
  }
  return list;
}

/** `address`: as a resolver writes it. */
export function isPublic(address: string): boolean {
  if (isIPv6(address)) return unicast.check(address, "ipv6") && !special.check(address, "ipv6");
  return !privateV4.check(address, "ipv4");
}
