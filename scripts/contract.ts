/**
 * `npm run contract` generates the console client's types in `src/console/web/Contract.d.ts` from the OpenAPI document. The file is not committed.
 * `npm run types` generates it before compiling. Run `npm run contract` once so that your editor finds the types.
 */
import { OpenApi } from "@effect/platform"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import openapiTypes, { astToString } from "openapi-typescript"
import type { OpenAPI3 } from "openapi-typescript"
import ts from "typescript"
import { Api } from "../src/app/Api.ts"
import { root } from "./bundle.ts"

type Documented = Record<string, unknown>

const head = `/**
 * The contract's types, generated from its OpenAPI document by \`npm run contract\`.
 * \`Usd\` is an exact amount: a number if a double can represent it, otherwise a string. Parse it with \`nano\` of \`money.ts\`.
 */
`

/** Removes the operations' error responses, because the client converts each of them to a `Refusal`. */
const withoutRefusals = (document: OpenAPI3): OpenAPI3 => {
  const paths = Object.entries(document.paths ?? {}).map(([path, item]) => {
    const operations = Object.entries(item as Documented).map(([method, operation]) => {
      const { responses } = operation as { responses?: Documented }
      if (responses === undefined) return [method, operation] as const
      const succeeds = Object.entries(responses).filter(([status]) => status.startsWith("2"))
      return [method, { ...(operation as Documented), responses: Object.fromEntries(succeeds) }] as const
    })
    return [path, Object.fromEntries(operations)] as const
  })
  return { ...document, paths: Object.fromEntries(paths) as NonNullable<OpenAPI3["paths"]> }
}

/** Keeps only the schemas that the paths refer to, directly or indirectly. */
const withUsedSchemas = (document: OpenAPI3): OpenAPI3 => {
  const all = document.components?.schemas ?? {}
  const found = new Set<string>()
  const collect = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (found.has(name!)) continue
      found.add(name!)
      collect(all[name!])
    }
  }
  collect(document.paths)
  const schemas = Object.fromEntries(Object.entries(all).filter(([name]) => found.has(name)))
  return { ...document, components: { ...document.components, schemas } }
}

const contractTypes = async (document: unknown): Promise<string> => {
  const nodes = await openapiTypes(withUsedSchemas(withoutRefusals(structuredClone(document) as OpenAPI3)), {
    transform: (_, { path }) =>
      path === "#/components/schemas/Usd"
        ? ts.factory.createUnionTypeNode([
            ts.factory.createKeywordTypeNode(ts.SyntaxKind.NumberKeyword),
            ts.factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword)
          ])
        : undefined
  })
  return head + astToString(nodes)
}

await writeFile(join(root, "src", "console", "web", "Contract.d.ts"), await contractTypes(OpenApi.fromApi(Api)))
