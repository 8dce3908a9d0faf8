/** The planted mistakes of the simulation: the code still contains each guard that one switches off, in one place. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { apply } from "../../scripts/simulate/Bundle.ts"
import { mistakes } from "../../scripts/simulate/Mistakes.ts"
import { root } from "../support/Service.ts"

it("are planted in one place each", () => {
  for (const { changes } of mistakes) {
    const files = new Map<string, string>()
    for (const change of changes) {
      const text = files.get(change.file) ?? readFileSync(join(root, change.file), "utf8")
      files.set(change.file, apply(text, change))
    }
  }
})

it("are at least thirty, each with its own name", () => {
  const names = mistakes.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(names.length).toBeGreaterThanOrEqual(30)
})
