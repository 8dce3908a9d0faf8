/** Copies the guides' Markdown into a build: to `dist/guides`, or into the executable's assets. */
import { cp } from "node:fs/promises"
import { join } from "node:path"
import { root } from "./bundle.ts"

export const copyGuides = (target: string): Promise<void> =>
  cp(join(root, "src", "app", "guides"), target, { recursive: true, filter: (path) => !path.endsWith(".ts") })
