/** The field for a tool's model. Several providers can offer the same model, so a choice contains both. */
import { useQuery } from "@tanstack/react-query"
import { api, responseBody } from "../../app/Client.ts"
import { exact } from "../../money.ts"
import { SelectField } from "../../parts/Fields.tsx"
import { playgroundTexts } from "../../texts/playground.ts"

type Tool = "speech" | "transcriptions"

const useToolModels = (tool: Tool) =>
  useQuery({
    queryKey: ["tool-models", tool],
    staleTime: 300_000,
    queryFn: async () => (await responseBody(api.GET(`/v1/tools/${tool}/models`))).models
  })

const keyOf = (provider: string, model: string): string => JSON.stringify([provider, model])

/** Returns the request fields for a choice. An empty choice has no fields, and the service chooses the model. */
export const toolModel = (choice: string): Readonly<Record<string, string>> => {
  if (choice === "") return {}
  const [provider, model] = JSON.parse(choice) as [string, string]
  return { provider, model }
}

interface ToolModelFieldProps {
  readonly tool: Tool
  /** An empty string lets the service choose. */
  readonly value: string
  readonly onChange: (choice: string) => void
}

export const ToolModelField = ({ onChange, tool, value }: ToolModelFieldProps) => {
  const { data: models = [] } = useToolModels(tool)
  const chosen =
    models.find(({ id, provider }) => keyOf(provider, id) === value) ?? models.find((model) => model.default)
  return (
    <SelectField
      name="model"
      label={playgroundTexts.model}
      options={[
        ["", playgroundTexts.asService],
        ...models.map(({ id, provider, provider_name }) => [keyOf(provider, id), `${id} · ${provider_name}`] as const)
      ]}
      {...(chosen !== undefined && { help: playgroundTexts.per(exact(chosen.unit_price_usd), chosen.unit) })}
      value={value}
      onChange={onChange}
    />
  )
}
