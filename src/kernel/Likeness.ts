/** Suggests similar names for a misspelled name. */

/** Finds up to three similar names by comparing pairs of letters, best match first. Less similar names are omitted. */
export const nearest = (word: string, names: ReadonlyArray<string>, minSimilarity: number): ReadonlyArray<string> => {
  const wanted = pairsOf(word)
  return names
    .map((name) => ({ name, likeness: likenessOf(wanted, pairsOf(name)) }))
    .filter(({ likeness }) => likeness >= minSimilarity)
    .toSorted((a, b) => b.likeness - a.likeness)
    .slice(0, nearMax)
    .map(({ name }) => name)
}

const nearMax = 3

const pairsOf = (text: string): ReadonlySet<string> => {
  const letters = text.toLowerCase()
  return new Set(Array.from(letters.slice(1), (letter, i) => `${letters[i]}${letter}`))
}

/** Returns the Dice coefficient of two sets, from 0 to 1. */
const likenessOf = (one: ReadonlySet<string>, other: ReadonlySet<string>): number => {
  let common = 0
  for (const pair of one) if (other.has(pair)) common++
  return (2 * common) / Math.max(1, one.size + other.size)
}
