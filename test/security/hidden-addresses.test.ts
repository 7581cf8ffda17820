/** Tests forbidden addresses of gates, hidden in every form that a network would still route there. */
import { expect, test } from "vitest";
import { mayConnect } from "../../shared/approval/guarded-post.ts";
import { seededChance } from "../simulation/chance.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";

const COUNT = 500;
/** Addresses with credentials of AWS, its containers, Alibaba and Azure. */
const CREDENTIALS = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16"];

const chance = seededChance(20_261_123);
const group = () => chance.below(0x10000);
const octetsOf = (address: string) => address.split(".").map(Number);

function linkLocal(): string {
  return chance.isLucky(0.5) ? chance.pick(CREDENTIALS) : `169.254.${chance.below(256)}.${chance.below(256)}`;
}

/** Returns sixteen octets as text with eight groups. */
function written(octets: readonly number[]): string {
  const groups = Array.from({ length: 8 }, (_, at) => ((octets[2 * at] ?? 0) << 8) | (octets[2 * at + 1] ?? 0));
  const plain = groups.map((one) => one.toString(16));
  const padded = groups.map((one) => one.toString(16).padStart(4, "0").toUpperCase());
  const dotted = `${plain.slice(0, 6).join(":")}:${octets.slice(12).join(".")}`;
  const short = plain.join(":").replace(/(^|:)0(?::0)+(:|$)/, "::");
  return chance.pick([plain.join(":"), padded.join(":"), dotted, short]);
}

const groups = (...all: readonly number[]) => all.flatMap((one) => [one >> 8, one & 0xff]);

/** Puts the hidden address behind a prefix. With 48, 56 or 64 bits the ninth octet is skipped. */
function split(prefix: readonly number[], bits: number, hidden: readonly number[]): readonly number[] {
  const octets = [...prefix.slice(0, bits / 8), ...hidden];
  return [...octets.slice(0, 8), ...(bits <= 64 ? [0] : []), ...octets.slice(8), ...groups(0, 0, 0, 0)].slice(0, 16);
}

const FORMS: Readonly<Record<string, (hidden: readonly number[]) => string>> = {
  "plain IPv4": (hidden) => hidden.join("."),
  "IPv4-mapped": (hidden) => written([...groups(0, 0, 0, 0, 0, 0xffff), ...hidden]),
  "IPv4-compatible": (hidden) => written([...groups(0, 0, 0, 0, 0, 0), ...hidden]),
  SIIT: (hidden) => written([...groups(0, 0, 0, 0, 0xffff, 0), ...hidden]),
  NAT64: (hidden) => written([...groups(0x64, 0xff9b, 0, 0, 0, 0), ...hidden]),
  "NAT64 with a local prefix": (hidden) => {
    const prefix = groups(0x64, 0xff9b, 1, group(), group(), group());
    return written(split(prefix, chance.pick([48, 56, 64, 96]), hidden));
  },
  "NAT64 with a network's own prefix": (hidden) => {
    const prefix = groups(0x2600 + chance.below(0x100), group(), group(), group(), 0, 0);
    return written(split(prefix, 96, hidden));
  },
  "6to4": (hidden) => written([0x20, 0x02, ...hidden, ...groups(group(), group(), group(), group(), group())]),
  "Teredo's server": (hidden) =>
    written([...groups(0x2001, 0), ...hidden, ...groups(group(), group(), group(), group())]),
  "Teredo's client": (hidden) =>
    written([...groups(0x2001, 0, 0x4136, 0xe378, 0x8000, group()), ...hidden.map((octet) => octet ^ 0xff)]),
  ISATAP: (hidden) =>
    written([...groups(0xfd00, group(), group(), group(), chance.pick([0, 0x200]), 0x5efe), ...hidden]),
};

test.each(Object.keys(FORMS))(
  "mayConnect refuses forbidden addresses in the form “%s”, also for private gates",
  (form) => {
    const through = Array.from(
      { length: COUNT * ATTACK_TIMES },
      () => FORMS[form]?.(octetsOf(linkLocal())) ?? "",
    ).filter((address) => mayConnect(address, true) || mayConnect(address, false));
    addAttacks(COUNT * ATTACK_TIMES, through.length);
    expect(through.slice(0, 5)).toEqual([]);
  },
);

test("mayConnect allows a private address in each form for a private gate", () => {
  for (const form of Object.values(FORMS).slice(1)) expect(mayConnect(form([10, 1, 2, 3]), true)).toBe(true);
});
