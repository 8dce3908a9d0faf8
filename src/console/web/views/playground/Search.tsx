/** Searches the web and shows the results as returned by the API. */
import { Search as SearchIcon } from "lucide-react"
import { useState } from "react"
import type { Schemas } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { CheckField, SelectField, TextField } from "../../parts/Fields.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import { Fact } from "./Fact.tsx"
import { Program } from "./Program.tsx"
import { searchCode } from "./programs.ts"
import { hostOf, isWebAddress } from "./results.ts"
import { filledIn, searchRuns, useSearchProviders } from "./tools.ts"
import type { SearchFields } from "./tools.ts"
import { ToolOf } from "./ToolOf.tsx"

const words = playgroundTexts.search

type Results = Schemas["SearchAnswer"]

const Result = ({ of: { content, raw_content, title, url } }: { readonly of: Results["results"][number] }) => (
  <li className="playground-hit">
    {isWebAddress(url) ? (
      <>
        <a href={url} target="_blank" rel="noreferrer noopener">
          {title || url}
        </a>
        <span className="quiet small ellipsis">{hostOf(url)}</span>
      </>
    ) : (
      <strong>{title || url}</strong>
    )}
    <p className="small">{content}</p>
    {raw_content === undefined || raw_content === "" ? null : (
      <details className="small">
        <summary className="quiet">{words.raw}</summary>
        <p className="playground-raw">{raw_content}</p>
      </details>
    )}
  </li>
)

const empty = { query: "", provider: "", max_results: "5", domains: "" }
type Draft = typeof empty

export const Search = ({ onExplain }: { readonly onExplain: (usageId: string) => void }) => {
  const { data: providers } = useSearchProviders()
  const [draft, setDraft] = useState<Draft>(empty)
  const [isRaw, setRaw] = useState(false)
  const field = <K extends keyof Draft>(name: K) => ({
    value: draft[name],
    onChange: (value: string) => setDraft({ ...draft, [name]: value })
  })
  const fields = { ...filledIn(draft), ...(isRaw && { include_raw: "true" }) }
  const isReady = draft.query.trim() !== ""
  return (
    <ToolOf<SearchFields, Results>
      runs={searchRuns}
      onExplain={onExplain}
      title={words.title}
      icon={SearchIcon}
      emptyTitle={words.emptyTitle}
      emptyText={words.emptyText}
      action={words.action}
      input={isReady ? fields : undefined}
      asked={({ query }) => query}
      shown={({ results }) =>
        results.length === 0 ? (
          <p className="quiet">{words.nothing}</p>
        ) : (
          <ol className="playground-hits">
            {results.map((result, index) => (
              <Result key={index} of={result} />
            ))}
          </ol>
        )
      }
      facts={({ provider, results }) => (
        <>
          <Fact name={words.results}>{count(results.length)}</Fact>
          {provider === undefined ? null : <Fact name={playgroundTexts.provider}>{provider}</Fact>}
        </>
      )}
      fields={
        <>
          <TextField
            name="query"
            type="search"
            label={words.query}
            placeholder={words.placeholder}
            maxLength={2000}
            {...field("query")}
          />
          <div className="playground-pair">
            <SelectField
              name="provider"
              label={playgroundTexts.provider}
              options={[
                ["", playgroundTexts.asService],
                ...(providers ?? []).map(({ id, name }) => [id, name] as const)
              ]}
              {...field("provider")}
            />
            <TextField name="max_results" label={words.most} inputMode="numeric" {...field("max_results")} />
          </div>
          <TextField name="domains" label={words.domains} help={words.domainsHelp} {...field("domains")} />
          <CheckField label={words.withRaw} value={isRaw} onChange={setRaw} />
        </>
      }
      program={<Program of={searchCode(isReady ? fields : { ...fields, query: words.example })} />}
    />
  )
}
