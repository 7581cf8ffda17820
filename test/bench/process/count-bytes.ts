/** Counts the bytes on all connections of this process, in both directions. */
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

/** Starts to count. The returned function returns the bytes so far. With TLS it counts the bytes inside. */
export function countBytes(): () => number {
  const sockets: Socket[] = [];
  subscribe("net.client.socket", (message) => {
    sockets.push((message as { readonly socket: Socket }).socket);
  });
  return () => sockets.reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0);
}
