/**
 * Generates the decision index. It lists each file that documents decisions where the specification is silent, with the first sentence of each
 * decision. A test compares the index with `src/DECISIONS.md`, and `npx vitest run test/package.test.ts -u` writes that file.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./bundle.ts"

const source = join(root, "src")
const heading = /^ \* (?:.*\. )?Where the specification is silent[^:]*:\n((?: \*.*\n)*)/m

/** Returns the first sentence of each bullet below the heading. */
const decisionsIn = (text: string): ReadonlyArray<string> => {
  const lines =
    heading
      .exec(text)?.[1]
      ?.split("\n")
      .map((line) => line.replace(/^ \*\/?/, "").trimEnd()) ?? []
  return lines
    .join("\n")
    .split(/\n(?= - )|^(?= - )/)
    .filter((bullet) => bullet.startsWith(" - "))
    .map((bullet) =>
      bullet
        .slice(3)
        .split(/\n\s*\n/)[0]!
        .replace(/\s+/g, " ")
        .trim()
    )
    .map((bullet) => /^.*?[.;](?= |$)/.exec(bullet)?.[0].replace(/;$/, ".") ?? bullet)
}

export const decisions = (): string => {
  const files = (readdirSync(source, { recursive: true }) as ReadonlyArray<string>).filter((file) =>
    file.endsWith(".ts")
  )
  const found = files.toSorted().flatMap((file) => {
    const list = decisionsIn(readFileSync(join(source, file), "utf8"))
    return list.length === 0 ? [] : [{ file, list }]
  })
  const sections = found.map(
    ({ file, list }) => `## [${file}](${file})\n\n${list.map((text) => `- ${text}`).join("\n")}`
  )
  return `# Decisions\n\nWhere the specification is silent, these files decide. Each head has the reasons.\n\n${sections.join("\n\n")}\n`
}
