/** Shares the connections of a port: one stranger, however many he opens, keeps nobody else out. */
import type { Socket } from "node:net";

interface Connection {
  readonly socket: Pick<Socket, "destroy">;
  readonly address: string;
}

/**
 * Once there are more than `most`, the oldest connection of the address with the most is closed. A connection on which a
 * caller has proved who he is stays; an API server behind the same address as a stranger keeps its own.
 */
export class ConnectionShares {
  readonly #most: number;
  /** by remote address and port */
  readonly #open = new Map<string, Connection>();
  /** by remote address: keys of the connections without a known caller, oldest first */
  readonly #unproven = new Map<string, Set<string>>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#open.size;
  }

  add(socket: Socket): void {
    const { remoteAddress = "", remotePort = 0 } = socket;
    const [key, address] = [keyOf(socket), shareOf(remoteAddress)];
    // The socket was closed before it reached us.
    if (remotePort === 0) return void socket.destroy();
    this.#open.set(key, { socket, address });
    const ofAddress = this.#unproven.get(address) ?? new Set();
    this.#unproven.set(address, ofAddress.add(key));
    socket.once("close", () => this.#remove(key));
    if (this.#open.size > this.#most) this.#closeOne();
  }

  /** Marks the connection as one of a known caller. */
  prove(socket: Pick<Socket, "remoteAddress" | "remotePort">): void {
    const connection = this.#open.get(keyOf(socket));
    if (connection) this.#forget(keyOf(socket), connection.address);
  }

  #closeOne(): void {
    const [first, ...others] = this.#unproven.values();
    if (first === undefined) return;
    const largest = others.reduce((most, one) => (one.size > most.size ? one : most), first);
    const [oldest = ""] = largest;
    const connection = this.#open.get(oldest);
    this.#remove(oldest);
    connection?.socket.destroy();
  }

  #remove(key: string): void {
    const connection = this.#open.get(key);
    if (connection) this.#forget(key, connection.address);
    this.#open.delete(key);
  }

  #forget(key: string, address: string): void {
    const ofAddress = this.#unproven.get(address);
    ofAddress?.delete(key);
    if (ofAddress?.size === 0) this.#unproven.delete(address);
  }
}

function keyOf({ remoteAddress = "", remotePort = 0 }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}

const GROUPS = 8;

/** An IPv4 address, or the 64-bit network of an IPv6 address, because one owner has all addresses of it. */
export function shareOf(address: string): string {
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? [];
  if (mapped !== undefined || !address.includes(":")) return mapped ?? address;
  const [head = "", tail = ""] = address.split("::");
  const groupsOf = (text: string) => (text === "" ? [] : text.split(":"));
  const [before, after] = [groupsOf(head), groupsOf(tail)];
  const zeros = address.includes("::") ? GROUPS - before.length - after.length : 0;
  return [...before, ...Array.from({ length: Math.max(0, zeros) }, () => "0"), ...after].slice(0, 4).join(":");
}
