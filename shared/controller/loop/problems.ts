/** Where a pass notes what went wrong with it, beside what stands in the reports of objects. */

/** The same problem is noted once. */
export function note({ problems }: { readonly problems: string[] }, problem: string): void {
  if (!problems.includes(problem)) problems.push(problem);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
