/** The bundles (`scripts/bundle.ts`): what they have of a package in place of what is installed. */
import { Effect, FiberId, Scheduler } from "effect"
import { build } from "esbuild"
import { createRequire } from "node:module"
import { join } from "node:path"
import { runInThisContext } from "node:vm"
import { expect, it } from "vitest"
import { common } from "../scripts/bundle.ts"
import { root } from "./support/Service.ts"

interface Parts {
  readonly Effect: typeof Effect
  readonly FiberId: typeof FiberId
  readonly Scheduler: typeof Scheduler
}

/**
 * Whether a concurrent `forEach` ends that is interrupted before the fiber has begun which starts its items. Layers are built by it: so it is
 * where one fails while another begins to build several.
 */
const ends = ({ Effect, FiberId, Scheduler }: Parts): boolean => {
  const scheduler = new Scheduler.SyncScheduler()
  const fiber = Effect.runFork(
    Effect.withFiberRuntime<void>((self) => {
      const items = {
        *[Symbol.iterator]() {
          // Its items are read right before that fiber is made.
          self.unsafeInterruptAsFork(FiberId.none)
          yield* [1, 2]
        }
      }
      return Effect.forEach(items, () => Effect.void, { concurrency: "unbounded", discard: true })
    }),
    { scheduler }
  )
  scheduler.flush()
  return fiber.unsafePoll() !== null
}

/** The package as the bundles have it. */
const bundled = async (): Promise<Parts> => {
  const { outputFiles } = await build({
    ...common,
    stdin: { contents: `export { Effect, FiberId, Scheduler } from "effect"`, resolveDir: root },
    format: "cjs",
    write: false
  })
  const module = { exports: {} }
  const body = runInThisContext(`(function (require, module, exports) {${outputFiles[0]!.text}\n})`)
  body(createRequire(join(root, "package.json")), module, module.exports)
  return module.exports as Parts
}

it("have a forEach that ends when it is interrupted before it has begun", async () => {
  expect(ends(await bundled())).toBe(true)
})

it("correct a forEach that waits without end: where the installed package does not, the correction can go", () => {
  expect(ends({ Effect, FiberId, Scheduler })).toBe(false)
})
