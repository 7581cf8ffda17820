/** Which addresses a gate may have: where the world can reach it, unless settings say that it is private. */
import { BlockList, isIPv4, isIPv6 } from "node:net";

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
 * No gate is there, whatever settings say: nobody's, everybody's, and those at which clouds give a machine its
 * credentials (AWS, Azure, Alibaba, Google), link-local ones among them.
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

/** `address`: as a resolver writes it. */
export function mayConnect(address: string, isPrivate: boolean): boolean {
  const family = isIPv6(address) ? "ipv6" : "ipv4";
  if (never.check(address, family)) return false;
  return isPrivate || isPublic(address);
}

function isPublic(address: string): boolean {
  if (isIPv6(address)) return unicast.check(address, "ipv6") && !special.check(address, "ipv6");
  return isIPv4(address) && !privateV4.check(address, "ipv4");
}
