/** Parses a number on the command line of a simulation. Throws for any other text. */
export function seedNumber(text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is no number of seeds`);
  return value;
}
